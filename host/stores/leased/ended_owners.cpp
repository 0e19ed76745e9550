#include "host/stores/leased/ended_owners.hpp"

#include <cstddef>
#include <utility>

#include "base/uuid.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/ownership_items.hpp"

namespace sluice::queue::leased {
namespace {

constexpr std::size_t kOfChance = 8;

}  // namespace

std::string make_incarnation(const std::string& host, Random& random) {
  return host + "/" + make_uuid(random).substr(0, kOfChance);
}

Result<void> mark_ended(dynamo::Client& client, const table::QueueTable& place, const std::string& incarnation,
                        bool settled, Deadline deadline) {
  const Place where{std::string(kHosts), incarnation};
  auto found = client.get_item({.table = place.table, .key = where.key(), .consistent = true}, deadline);
  if (!found) {
    return table::store_error(place, found.error());
  }
  const auto mark = ended_beat(place.table, std::move(found->item), settled);
  if (!mark) {
    return {};
  }
  if (const auto written = client.put_item(*mark, deadline); !written) {
    return table::store_error(place, written.error());
  }
  return {};
}

}  // namespace sluice::queue::leased
