#pragma once

#include "host/stores/table/examined_items.hpp"

namespace sluice::queue::dynamomq {

/// Looks for items that are in neither half, because the index leaves them out or has them elsewhere.
Result<table::ExaminedItems> find_outside_items(dynamo::Client& client, const std::string& table,
                                                std::size_t most_requests, Deadline deadline);

}  // namespace sluice::queue::dynamomq
