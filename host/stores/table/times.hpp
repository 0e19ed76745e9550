#pragma once

#include "base/clock.hpp"
#include "base/timestamp.hpp"

namespace sluice::queue::table {

/// One moment on both clocks.
struct Moment {
  WallTime wall{};
  SteadyTime steady{};
};

/// `time` + `span` on the monotonic clock, or its end where that is later.
constexpr SteadyTime until(SteadyTime time, Duration span) {
  return span > SteadyTime::max() - time ? SteadyTime::max() : time + span;
}

/// `time` + `span`, or kEndOfTime where that is later; a negative span counts as zero.
constexpr WallTime later(WallTime time, Duration span) {
  if (span <= Duration::zero()) {
    return time;
  }
  return span > kEndOfTime - time ? kEndOfTime : time + span;
}

}  // namespace sluice::queue::table
