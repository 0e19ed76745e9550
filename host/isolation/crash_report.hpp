#pragma once

#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "host/isolation/crash_handler.hpp"

namespace sluice::isolation {

/// The functions that an ELF file names, to find the one at an offset. A value; empty for a file that is none, or that
/// has been stripped.
class SymbolTable {
 public:
  explicit SymbolTable(const std::string& file);

  /// "Bomb::explode(int)+0x14", the name as its author wrote it; empty when no function is known there.
  std::string name_at(std::uint64_t offset) const;

 private:
  struct Function {
    std::uint64_t start = 0;
    std::uint64_t size = 0;
    std::string name;
  };
  std::vector<Function> functions_;  ///< by start
};

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
  /// The summary with the stack_text, one line of at most `limit` bytes: equal for equal crashes, so that
  /// failures can be counted by it.
  std::string failure_text(std::size_t limit) const;
};

/// Reads what a crash handler has left, whatever bytes these are; nothing when none has written. Looks for names of
/// functions in the files of the stack as they are now.
std::optional<CrashReport> read_crash(const CrashRecord& record);

/// "SIGSEGV"; "signal 77" for one without a name.
std::string signal_name(int signal);

}  // namespace sluice::isolation
