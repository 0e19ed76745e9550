#pragma once

#include <memory>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "host/stores/outbox/database.hpp"

namespace sluice::queue::outbox {

/// An outbox in a DynamoDB table of the application's; outbox_place.hpp says how its rows lie there, docs/run/outbox.md
/// why. No request is made before a session is asked for something. The references must outlive it.
std::unique_ptr<Database> make_dynamodb_outbox(Settings settings, dynamo::Client& client, const Clock& clock,
                                               Random& random);

}  // namespace sluice::queue::outbox
