#pragma once

#include <chrono>

#include "base/clock.hpp"
#include "host/queue/stored_message.hpp"

namespace sluice::queue {

// 2100 and 2255: what a move hides is seen again, by its record, between the two.
inline constexpr WallTime kFirstAway{std::chrono::seconds(4'102'444'800)};
inline constexpr WallTime kLastAway{std::chrono::seconds(8'993'635'200)};

/// Whether it is hidden as a move from queue to queue hides: taken in the source, or not yet shown in the target.
inline bool is_moving(const StoredMessage& record) {
  return record.invisible_until && *record.invisible_until >= kFirstAway && *record.invisible_until < kLastAway;
}

}  // namespace sluice::queue
