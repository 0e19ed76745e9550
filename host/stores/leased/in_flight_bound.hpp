#pragma once

#include <cstdint>

namespace sluice::queue::leased {

/// How many messages from the head of a shard, of each priority, may be at work: nothing that lies farther behind is.
/// Messages are counted in the order of their keys, whatever order they were handed out in and whatever time they wait
/// for, so that whoever takes the shard counts the same. 0: nothing is at work.
using InFlightBound = std::uint32_t;

/// As good as no bound.
inline constexpr InFlightBound kUnbounded = 1'000'000;

}  // namespace sluice::queue::leased
