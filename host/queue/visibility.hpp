#pragma once

#include <algorithm>

#include "base/clock.hpp"
#include "base/timestamp.hpp"

namespace sluice::queue {

/// `time` + `span`, or kEndOfTime where that is later; a negative span counts as zero.
constexpr WallTime later(WallTime time, Duration span) {
  if (span <= Duration::zero()) {
    return time;
  }
  return span > kEndOfTime - time ? kEndOfTime : time + span;
}

/// Until when a message is hidden that is to be seen at once, and no earlier than 1970: `now` + `span`, which is not
/// positive. At the very instant that is stored a message is hidden still, so that zero means the instant before.
inline WallTime seen_already(WallTime now, Duration span) {
  const Duration back = std::min(span, Duration(-1));
  return back < WallTime{} - now ? WallTime{} : now + back;
}

}  // namespace sluice::queue
