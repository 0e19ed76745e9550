#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "host/cli/arguments.hpp"
#include "host/cli/command.hpp"
#include "host/cli/exit.hpp"
#include "host/queue/store.hpp"
#include "host/runtime/store_factory.hpp"

namespace sluice::cli {

/// A command's own flags, and after them those of every command on queues: --queue, --config, --table-name,
/// --index-name, --endpoint-url, --output.
std::vector<Flag> with_store_flags(std::vector<Flag> own);

/// A store and a queue in it, opened for one command. A resource that can be moved.
///
/// Where: with --table-name, --index-name or --endpoint-url, and where there is no host file, the store is DynamoDB by
/// AWS's usual environment, and the table --table-name, else the queue's name, else dynamo-mq-table. Otherwise it is
/// what the host file says; then --queue names the queue, and may be left out when the file and its jobs name just one.
class QueueSession {
 public:
  enum class HostFiles {
    anywhere,    ///< --config, SLUICE_CONFIG or the default places
    named_only,  ///< the default places are not looked at
  };
  enum class Queue { needed, optional };

  /// Exit 78 for the host file, 64 when no queue is named though one is needed, 1 for the store.
  static OrExit<QueueSession> open(const Arguments& arguments, Queue queue = Queue::needed,
                                   HostFiles files = HostFiles::anywhere);

  queue::Store& store() { return store_.store(); }
  /// What the command has spent at DynamoDB; nothing elsewhere.
  std::optional<runtime::DynamoDbCost> cost() const { return store_.cost(); }
  /// The host file's content, or what stands for it without one.
  const config::HostConfig& host() const { return host_; }
  /// The queue's name; empty when it was optional and is not named.
  const std::string& queue() const { return queue_; }
  /// One half of that queue.
  queue::QueueAddress address(queue::QueueType type) const { return {queue_, type}; }
  const Clock& clock() const { return parts_->clock; }
  /// For one request of a command: half a minute from now.
  Deadline deadline() const { return Deadline::after(clock(), std::chrono::seconds(30)); }

 private:
  /// What the store refers to; it must not move.
  struct Parts {
    SystemClock clock;
    SeededRandom random;
  };

  QueueSession(config::HostConfig host, std::string queue, std::unique_ptr<Parts> parts, runtime::OpenStore store)
      : host_(std::move(host)), queue_(std::move(queue)), parts_(std::move(parts)), store_(std::move(store)) {}

  config::HostConfig host_;
  std::string queue_;
  std::unique_ptr<Parts> parts_;
  runtime::OpenStore store_;
};

/// The half of the session's queue that --dlq names.
queue::QueueAddress queue_address(const QueueSession& session, const Arguments& arguments);

/// The queues that a host file and its jobs name, in order. Job files that cannot be read are passed over.
std::vector<std::string> known_queues(const config::HostConfig& host);

}  // namespace sluice::cli
