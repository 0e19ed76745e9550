#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace sluice::queue::sqlite {

/// Times are stored as nanoseconds since 1970.
inline std::int64_t stored(WallTime time) { return time.time_since_epoch().count(); }
inline WallTime loaded(std::int64_t time) { return WallTime(Duration(time)); }

}  // namespace sluice::queue::sqlite
