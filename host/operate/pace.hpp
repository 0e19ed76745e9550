#pragma once

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"

namespace sluice::operate {

/// Spreads the changes of a bulk run over time, at most so many a second. Not thread-safe: it is given the time.
class Pace {
 public:
  /// `rate` a second; 0 or less: no limit.
  explicit Pace(double rate) : rate_(rate) {}

  /// How large a batch may be so that it comes at least four times a second.
  std::size_t batch(std::size_t most) const {
    return rate_ <= 0 ? most : static_cast<std::size_t>(std::clamp(rate_ / 4, 1.0, static_cast<double>(most)));
  }
  /// When the next batch may begin.
  SteadyTime next() const { return next_; }
  /// So many were changed in a batch that began at `now`.
  void took(std::size_t count, SteadyTime now) {
    if (rate_ > 0) {
      const std::chrono::duration<double> seconds(static_cast<double>(count) / rate_);
      next_ = std::max(next_, now) + std::chrono::duration_cast<Duration>(seconds);
    }
  }

 private:
  double rate_;
  SteadyTime next_{};
};

}  // namespace sluice::operate
