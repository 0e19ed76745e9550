#pragma once

#include <algorithm>

#include "base/clock.hpp"
#include "host/queue/message.hpp"
#include "host/stores/sqlite/times.hpp"

namespace sluice::queue::sqlite {

/// From when and until when messages are somebody's. Made before the write that grants it.
struct Lease {
  Lease(const Clock& clock, Duration visibility) {
    from = clock.steady_now();
    const Duration span = std::clamp(visibility, Duration::zero(), Duration(SteadyTime::max() - from));
    held_until = from + span;
    now = clock.wall_now();
    until = later(now, span);
  }

  SteadyTime from;
  SteadyTime held_until;  ///< on this process's monotonic clock; never later than the record says
  WallTime now;
  WallTime until;
};

}  // namespace sluice::queue::sqlite
