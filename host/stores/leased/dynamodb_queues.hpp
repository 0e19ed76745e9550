#pragma once

#include <memory>

#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "host/stores/leased/leased_queues.hpp"

namespace sluice::queue {

/// Queues in DynamoDB tables, each in its layout: those that `leased` names in that one, all others in DynamoMQ's. They
/// share one client. The references must outlive them.
std::unique_ptr<Queues> make_dynamodb_queues(dynamomq::DynamoMqOptions dynamomq, leased::LeasedOptions leased,
                                             dynamo::Client& client, const Clock& clock, Random& random);

}  // namespace sluice::queue
