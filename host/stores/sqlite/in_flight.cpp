#include "host/stores/sqlite/in_flight.hpp"

#include <algorithm>
#include <limits>

#include "host/stores/sqlite/times.hpp"

namespace sluice::queue::sqlite {

InFlight::InFlight(Connection& connection)
    : count_(connection,
             "SELECT count(*) FROM (SELECT 1 FROM sluice_deliveries WHERE half = ?1 AND until IS NOT NULL AND until >= "
             "?2 AND "
             "leased = 1 LIMIT ?3)") {}

std::uint64_t InFlight::room(std::int64_t half, std::uint64_t limit, WallTime now) {
  const auto most = static_cast<std::int64_t>(
      std::min<std::uint64_t>(limit, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())));
  const std::int64_t count = count_.bind(half, stored(now), most).only().value_or(0);
  return static_cast<std::uint64_t>(most - std::min(count, most));
}

}  // namespace sluice::queue::sqlite
