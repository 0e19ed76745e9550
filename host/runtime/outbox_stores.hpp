#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "host/observe/metrics.hpp"
#include "host/queue/queues.hpp"
#include "host/runtime/dynamodb_connection.hpp"
#include "host/stores/outbox/outbox_queues.hpp"

/// From [outbox.NAME] of a host file to the store that it describes.
namespace sluice::runtime {

/// What is told of an outbox and what it is given. The references, and `metrics` and `book` unless they are null,
/// outlive it.
struct OutboxSeams {
  const Clock& clock;
  Random& random;
  observe::Metrics* metrics = nullptr;  ///< of rows, and of requests to DynamoDB
  std::function<void(const std::string&)> report{};
  cost::CostBook* book = nullptr;  ///< of what those cost
};

/// An outbox with what it stands on.
struct OpenOutbox {
  std::unique_ptr<DynamoDbConnection> connection;  ///< of kind = "dynamodb"; otherwise null
  std::unique_ptr<queue::outbox::OutboxQueues> queues;
};

/// Connects to nothing yet. ErrorCode::queue_missing where the host file has none of that name, `invalid` for what the
/// kind cannot do.
Result<OpenOutbox> open_outbox(const config::HostConfig& host, const std::string& name, OutboxSeams seams);

/// Which rows the job takes.
queue::Selection selection_of(const config::JobConfig& job);

}  // namespace sluice::runtime
