#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/clock.hpp"
#include "base/text/utf8.hpp"

/// What happens when a handler, or the host itself, breaks the process.
namespace sluice::isolation {

/// Text of a fixed place in memory that outlives the process. What does not fit is cut off. Async-signal-safe.
template <std::size_t kSize>
struct FixedText {
  std::uint32_t size;
  char bytes[kSize - sizeof(std::uint32_t)];

  void assign(std::string_view text) noexcept {
    const std::size_t fits = std::min(text.size(), sizeof(bytes));
    std::copy_n(text.data(), fits, bytes);
    size = static_cast<std::uint32_t>(fits);
  }
  /// Whatever a damaged file says, within its bounds.
  std::string_view view() const noexcept { return {bytes, std::min<std::size_t>(size, sizeof(bytes))}; }
  /// The same as UTF-8, for people.
  std::string text() const { return clean_utf8(view(), std::string::npos); }
};

inline constexpr std::size_t kStackLimit = 48;
inline constexpr std::size_t kModuleLimit = 24;

enum class CrashCause : std::uint32_t {
  signal = 1,  ///< a fault, or abort()
  exit = 2,    ///< exit() was called
  look = 3,    ///< nothing ended: somebody asked where the thread is
};

/// What a crash handler leaves behind, in a file or in memory shared with who wants to know. It is written inside a
/// signal handler and read by another process, so it is plain bytes of a fixed size.
struct CrashRecord {
  enum State : std::uint32_t { none = 0, begun = 1, written = 2, complete = 3 };
  struct Frame {
    std::uint64_t offset;  ///< in the module; the address itself without one
    std::uint32_t module;  ///< kModuleLimit: none
    std::uint32_t reserved;
  };

  std::atomic<std::uint32_t> state;  ///< written: all but the stack; complete: the stack too
  std::uint32_t cause;
  std::int32_t signal;
  std::int32_t exit_code;
  std::uint64_t address;  ///< that a fault was about; 0: none is known
  std::int64_t time;      ///< of the wall clock, nanoseconds
  std::uint64_t memory;   ///< writable private memory of the process in bytes; 0: not known
  std::uint32_t slot;     ///< of the ledger; 0: nothing is known to have run
  std::uint32_t blamed;   ///< 1: the thread ran a handler, which the texts name
  FixedText<160> job;
  FixedText<160> handler;
  FixedText<512> plugin;
  FixedText<512> message;
  FixedText<512> what;  ///< of the exception that nobody caught
  std::uint32_t frame_count;
  std::uint32_t module_count;
  std::array<Frame, kStackLimit> frames;
  std::array<FixedText<256>, kModuleLimit> modules;
};
static_assert(std::is_standard_layout_v<CrashRecord> && std::atomic<std::uint32_t>::is_always_lock_free);

/// The place of a held message in the crash ledger's file. 0: it has none.
using HeldSlot = std::uint32_t;
/// What runs is not one message: whoever looks when it crashes has nobody to blame but the handler.
inline constexpr HeldSlot kNoSlot = ~HeldSlot{0};
/// Whose name stands for the message's then.
inline constexpr std::string_view kOneOfABatch = "(one of a batch)";

/// Whose code a thread runs. Outlives every handler that is started with it.
struct HandlerFacts {
  std::string job;
  std::string plugin;  ///< its file
  std::string handler;
};

/// The handler that a thread runs, for whoever looks when it crashes. Empty when it runs none.
struct RunningHandler {
  const HandlerFacts* facts = nullptr;
  std::string_view message;
  HeldSlot slot = 0;
};

/// The calling thread runs a handler from now on; the message's id is copied. The first call of a thread gives it a
/// stack for signals, so that one that has used up its own can still say so. noexcept, and no system call after the
/// first.
void handler_begins(const RunningHandler& running) noexcept;
/// It has returned.
void handler_returns() noexcept;
/// The same if this is its message, or one of its batch; a thread may end what others have begun.
void handler_returns(HeldSlot slot) noexcept;

enum class CrashNotice {
  line,  ///< one on stderr
  none,  ///< whoever reads the record says it
};

/// From now on SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, an exception that nobody catches, and exit() inside a handler
/// are written into `record`: signal, plugin, handler, message and stack, and one line on stderr. Then the signal does
/// what it does anyhow; exit() inside a handler ends with status 70. A thread that runs no handler blames nobody, nor
/// does a signal of another process; one that somebody handles already is left to him. `record` outlives its use, or is
/// replaced by another call, the only one once more than one thread runs; null: only the line is written.
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

/// "Bomb::explode(int)+0x14": the function of an ELF file that lies at this offset, by the name that its author wrote;
/// empty when none is known there.
std::string function_at(const std::string& file, std::uint64_t offset);

struct StackFrame {
  std::string module;  ///< file; empty: in none
  std::uint64_t offset = 0;
  std::string text;  ///< "explode(int)+0x14 in bomb.so", or with the offset alone where there is no name for it
};

/// A crash as people are told of it. A value.
struct CrashReport {
  CrashCause cause = CrashCause::signal;
  int signal = 0;
  int exit_code = 0;
  std::uint64_t address = 0;
  WallTime time{};
  std::uint64_t memory = 0;
  std::uint32_t slot = 0;
  bool blamed = false;  ///< the texts below name the handler that ran
  std::string job;
  std::string handler;
  std::string plugin;
  std::string message;
  std::string what;  ///< of an exception that nobody caught
  std::vector<StackFrame> stack;

  /// "SIGSEGV at address 0x0 in handler 'bomb' of bomb.so", one line.
  std::string summary() const;
  /// "explode() in bomb.so < handle() in bomb.so", its upper part; empty when none is known.
  std::string stack_text() const;
  /// The summary with the stack_text, one line of at most `limit` bytes; equal for equal crashes.
  std::string failure_text(std::size_t limit) const;
};

/// A file that the process was given open, whatever lies under its name by now. A value.
struct OpenModule {
  std::string file;   ///< as people know it
  std::string bytes;  ///< where they can be read
};
using OpenModules = std::map<std::string, OpenModule>;  ///< by the names that the process knew them by

/// Reads what a crash handler has left, whatever bytes these are; nothing when none has written. Looks for names of
/// functions in the files of the stack as they are now, and in those that are open still.
std::optional<CrashReport> read_crash(const CrashRecord& record, const OpenModules& opened = {});

/// "SIGSEGV"; "signal 77" for one without a name.
std::string signal_name(int signal);

}  // namespace sluice::isolation
