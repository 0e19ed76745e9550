#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "dynamo/client.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::dynamomq {

/// An item that no look at a queue shows, and why.
struct OutsideItem {
  std::string id;
  std::string why;  ///< a clause, such as "it has no queue_type"
};

/// What a look at the items of a table has found.
struct OutsideItems {
  static constexpr std::size_t kNamed = 10;

  std::uint64_t read = 0;     ///< items looked at
  std::uint64_t outside = 0;  ///< of these: in neither half, because the index leaves them out or has them elsewhere
  std::uint64_t ours =
      0;              ///< of these: not in the index, records of hosts and idempotency keys, which do not belong there
  bool whole = true;  ///< there are no more items
  double read_units = 0;
  std::vector<OutsideItem> first;  ///< at most kNamed of those outside
};

/// Reads the items of a table, a megabyte a request, and at most so many requests: each costs up to 128 read units.
Result<OutsideItems> find_outside_items(dynamo::Client& client, const table::QueueTable& place,
                                        std::size_t most_requests, Deadline deadline);

}  // namespace sluice::queue::dynamomq
