#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace sluice::queue::leased {

/// A time, and how many shards the queue had then: of what ids are made that say the same place each time.
struct Moment {
  WallTime time{};
  std::uint32_t shards = 1;
};
/// In letters and digits; to the ms.
std::string spelt_moment(const Moment& moment);
/// Nothing for a text that is none.
std::optional<Moment> read_moment(std::string_view text);

}  // namespace sluice::queue::leased
