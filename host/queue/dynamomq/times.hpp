#pragma once

#include "base/clock.hpp"

namespace sluice::queue::dynamomq {

/// One moment on both clocks.
struct Moment {
  WallTime wall{};
  SteadyTime steady{};
};

/// The latest time that is written: the end of the last year that a timestamp of nine digits can hold in 64 bits.
inline constexpr WallTime kEndOfTime{std::chrono::seconds(9'214'646'399)};  // 2261-12-31T23:59:59Z

/// `time` + `span`, or kEndOfTime where that is later; a negative span counts as zero.
constexpr WallTime later(WallTime time, Duration span) {
  if (span <= Duration::zero()) {
    return time;
  }
  return span > kEndOfTime - time ? kEndOfTime : time + span;
}

}  // namespace sluice::queue::dynamomq
