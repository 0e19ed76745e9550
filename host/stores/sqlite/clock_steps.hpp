#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "base/clock.hpp"

namespace sluice::queue::sqlite {

/// By how much the wall clock has been set forward, or has gone on while the machine slept, since this process began to
/// look. A record says by the wall clock when its lease ends, but the lease was given for a span, and all who use a
/// file are on one machine and measure it alike: what was leased before ends by that much later.
class ClockSteps {
 public:
  static constexpr Duration kLeast = std::chrono::seconds(1);  ///< less may be a clock that is being put right slowly
  static constexpr std::size_t kMost = 8;                      ///< so many are remembered, the latest ones

  /// Of both clocks at one time.
  void look(WallTime wall, SteadyTime steady) {
    if (looked_) {
      const Duration passed = steady - steady_;
      const Duration by = wall - wall_ - passed;
      if (by <= -kLeast) {
        steps_.clear();  // times from before may be told from later ones no more
      } else if (by >= kLeast) {
        if (steps_.size() == kMost) {
          steps_.erase(steps_.begin());
        }
        steps_.push_back({std::max(wall - by + Duration(1), wall - passed), by});
      }
    }
    looked_ = true;
    wall_ = wall;
    steady_ = steady;
  }

  bool none() const { return steps_.empty(); }
  /// When, by the wall clock as it goes now, a lease ends that was written at `written` to end at `until`.
  WallTime end_of(WallTime until, WallTime written) const {
    for (const Step& step : steps_) {
      until += written < step.before ? step.by : Duration::zero();
    }
    return until;
  }

 private:
  struct Step {
    WallTime before;  ///< what was written earlier was written by the clock as it went until then
    Duration by;
  };

  bool looked_ = false;
  WallTime wall_{};
  SteadyTime steady_{};
  std::vector<Step> steps_;
};

}  // namespace sluice::queue::sqlite
