#pragma once

#include <cstdint>
#include <thread>

namespace sluice::isolation {

/// How long it is worth looking at a word of memory before one sleeps on it: a while where that has paid of late, not
/// at all where it has not, or where there is no second processor to change it meanwhile. Of one thread.
class SpinBudget {
 public:
  /// True once `happened()`, false when it is time to sleep.
  template <typename Happened>
  bool until(Happened happened) noexcept {
    if (happened()) {
      return true;
    }
    const std::uint32_t looks = budget_ > 0 ? budget_ : (++skipped_ % kTryAgain == 0 ? kLeast : 0);
    for (std::uint32_t i = 0; i < looks; ++i) {
      pause();
      if (happened()) {
        budget_ = budget_ < kMost ? budget_ + kLeast : kMost;
        return true;
      }
    }
    budget_ /= 2;
    return false;
  }

 private:
  static constexpr std::uint32_t kLeast = 64;
  static constexpr std::uint32_t kMost = 512;  ///< about ten microseconds
  static constexpr std::uint32_t kTryAgain = 64;

  static void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  std::uint32_t budget_ = std::thread::hardware_concurrency() > 1 ? kMost : 0;
  std::uint32_t skipped_ = 0;
};

}  // namespace sluice::isolation
