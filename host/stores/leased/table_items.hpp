#pragma once

#include "base/clock.hpp"
#include "host/stores/table/examined_items.hpp"

namespace sluice::queue::leased {

/// Looks for items of a leased table that are odd, by the time `now`.
Result<table::ExaminedItems> examine_items(dynamo::Client& client, const std::string& table, std::size_t most_requests,
                                           WallTime now, Deadline deadline);

}  // namespace sluice::queue::leased
