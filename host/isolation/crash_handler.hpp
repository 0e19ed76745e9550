#pragma once

#include <atomic>
#include <cstddef>

#include "host/isolation/crash_record.hpp"

/// What happens when a handler, or the host itself, breaks the process.
namespace sluice::isolation {

enum class CrashNotice {
  line,  ///< one on stderr
  none,  ///< whoever reads the record says it
};

/// From now on SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, an exception that nobody catches, and exit() called inside a
/// handler are written into `record`: signal, plugin, handler, message and stack, and one line on stderr. Then the
/// signal does what it does anyhow (a core, an exit status); exit() inside a handler ends with status 70.
///
/// A thread that runs no handler blames nobody, nor does a signal that another process sent. A signal that somebody
/// handles already, such as a sanitizer, is left to him. `record` outlives the process's use of it, or is replaced by
/// another call; null: only the line is written. Once more than one thread runs, only to replace the record.
void install_crash_handler(CrashRecord* record, CrashNotice notice = CrashNotice::line);

/// Memory that is a file's, which somebody may cut off.
struct FileMemory {
  char* const base;
  const std::size_t size;
  std::atomic<bool> cut_off{false};
};

/// From now on, where the crash handler is installed, whoever touches a page of `memory` that its file has no more gets
/// zeros of this process's own there, and `cut_off` says so: it is SIGBUS otherwise. In place of the one before.
/// `memory` outlives that; null: there is none any more.
void survive_truncation(FileMemory* memory);

/// From now on `signal` writes where the thread that takes it is into the same record, without a line, and the thread
/// goes on: for a process that is about to be killed because it hangs.
void install_look_handler(int signal);

}  // namespace sluice::isolation
