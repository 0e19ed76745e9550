#pragma once

#include <memory>

#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/dynamodb/outbox_place.hpp"

namespace sluice::queue::outbox {

/// Reads pending rows: one consistent query for each bucket, so that a row is seen in its order from the moment it was
/// committed. There are no notifications. `place` outlives it.
std::unique_ptr<ReadSession> make_dynamodb_reader(OutboxPlace& place);

}  // namespace sluice::queue::outbox
