#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>

namespace sluice::isolation {

/// How long it is worth looking at a word of memory before one sleeps on it: as long as it has taken of late, and not
/// at all where it takes too long, or where there is no second processor to change it meanwhile. Of one thread.
///
/// Now and then it looks as long as it ever may: two who wait for each other would otherwise never find out that the
/// answer comes quickly to one who is awake, for it takes a sleeper longer to wake than the other one looks.
class SpinBudget {
 public:
  /// True once `happened()`, false when it is time to sleep.
  template <typename Happened>
  bool until(Happened happened) noexcept {
    if (happened()) {
      return true;
    }
    const std::uint32_t looks = budget_ > 0 || most_ == 0 ? budget_ : (++skipped_ % kTryAgain == 0 ? most_ : 0);
    for (std::uint32_t i = 1; i <= looks; ++i) {
      pause();
      if (happened()) {
        budget_ = std::clamp(2 * i, std::max(budget_, kLeast), most_);
        return true;
      }
    }
    budget_ = budget_ > kLeast ? budget_ / 2 : 0;
    return false;
  }

 private:
  static constexpr std::uint32_t kLeast = 64;
  static constexpr std::uint32_t kMost = 2048;  ///< about forty microseconds: what two sleeps cost
  static constexpr std::uint32_t kTryAgain = 64;

  static void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  const std::uint32_t most_ = std::thread::hardware_concurrency() > 1 ? kMost : 0;
  std::uint32_t budget_ = most_;
  std::uint32_t skipped_ = 0;
};

}  // namespace sluice::isolation
