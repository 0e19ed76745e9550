#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"

namespace sluice::queue::sqlite {

/// Times are stored as nanoseconds since 1970. No later one is stored than this: 2261-01-01, which every reader of
/// timestamps knows.
inline constexpr WallTime kLatest{std::chrono::seconds(9'183'110'400)};

inline std::int64_t stored(WallTime time) { return time.time_since_epoch().count(); }
inline WallTime loaded(std::int64_t time) { return WallTime(Duration(time)); }

/// `now + span`, at most kLatest; a negative span counts as none.
inline WallTime later(WallTime now, Duration span) {
  const Duration left = std::max(Duration::zero(), Duration(kLatest - now));
  return now + std::clamp(span, Duration::zero(), left);
}

}  // namespace sluice::queue::sqlite
