#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "host/stores/leased/leased_queues.hpp"

namespace sluice::queue {

/// Queues in DynamoDB tables, each in its layout.
class DynamoDbQueues : public Queues {
 public:
  /// The owner of that incarnation has ended, as is known for certain: says so in the tables of those of the queues
  /// that hosts own shards of. The first error, when all has been tried.
  virtual Result<void> owner_ended(const std::set<std::string>& queues, const std::string& incarnation, bool settled,
                                   Deadline deadline) = 0;
  /// As LeasedQueues'. Null for a queue of the other layout, of which hosts own nothing.
  virtual std::unique_ptr<MoveOwnership> take_ownership(const std::string& queue, const std::vector<Half>& halves) = 0;
};

/// Those that `dynamomq` names lie in DynamoMQ's layout, all others in the leased one. They share one client. The
/// references must outlive them.
std::unique_ptr<DynamoDbQueues> make_dynamodb_queues(dynamomq::DynamoMqOptions dynamomq, leased::LeasedOptions leased,
                                                     dynamo::Client& client, const Clock& clock, Random& random);

}  // namespace sluice::queue
