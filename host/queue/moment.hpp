#pragma once

#include "base/clock.hpp"

namespace sluice::queue {

/// One moment on both clocks.
struct Moment {
  WallTime wall{};
  SteadyTime steady{};
};

/// `time` + `span` on the monotonic clock, or its end where that is later.
constexpr SteadyTime until(SteadyTime time, Duration span) {
  return span > SteadyTime::max() - time ? SteadyTime::max() : time + span;
}

}  // namespace sluice::queue
