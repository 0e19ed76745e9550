#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "dynamo/client.hpp"
#include "host/queue/selection.hpp"
#include "host/stores/outbox/outbox_queues.hpp"

/// From [outbox.NAME] of a host file to the store that it describes.
namespace sluice::runtime {

/// What an outbox stands on. The references, and the client, outlive it.
struct OutboxSeams {
  const Clock& clock;
  Random& random;
  dynamo::Client* client = nullptr;  ///< for kind = "dynamodb"; otherwise null
  std::function<void(const std::string&)> report{};
};

/// Connects to nothing yet. ErrorCode::queue_missing where the host file has none of that name, `invalid` for what the
/// kind cannot do.
Result<std::unique_ptr<queue::outbox::OutboxQueues>> open_outbox(const config::HostConfig& host,
                                                                 const std::string& name, OutboxSeams seams);

/// Which rows the job takes.
queue::Selection selection_of(const config::JobConfig& job);

}  // namespace sluice::runtime
