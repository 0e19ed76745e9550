#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#include "base/clock.hpp"

/// The kernel's way of waiting for a word of memory, here between processes.
namespace sluice::isolation {

/// Sleeps while `word` is `seen`, at most `timeout` (Duration::max(): for ever). May return early.
inline void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen, Duration timeout) noexcept {
  timespec span{};
  if (timeout != Duration::max()) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
    span = {static_cast<std::time_t>(seconds.count()), static_cast<long>((timeout - seconds).count())};
  }
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, timeout == Duration::max() ? nullptr : &span, nullptr, 0);
}

inline void futex_wake(const std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace sluice::isolation
