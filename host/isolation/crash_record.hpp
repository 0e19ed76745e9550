#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>
#include <type_traits>

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

}  // namespace sluice::isolation
