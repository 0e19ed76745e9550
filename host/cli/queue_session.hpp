#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "host/cli/arguments.hpp"
#include "host/cli/exit.hpp"
#include "host/queue/store.hpp"
#include "host/runtime/store_factory.hpp"

namespace sluice::cli {

/// The host file's store, opened for one command. A resource that can be moved.
class QueueSession {
 public:
  /// Exit 78 for the host file, 1 for the store.
  static OrExit<QueueSession> open(const Arguments& arguments);

  queue::Store& store() { return store_.store(); }
  /// What the command has spent at DynamoDB; nothing elsewhere.
  std::optional<runtime::DynamoDbCost> cost() const { return store_.cost(); }
  const config::HostConfig& host() const { return host_; }
  const Clock& clock() const { return parts_->clock; }
  /// For one request of a command: half a minute from now.
  Deadline deadline() const { return Deadline::after(clock(), std::chrono::seconds(30)); }

 private:
  /// What the store refers to; it must not move.
  struct Parts {
    SystemClock clock;
    SeededRandom random;
  };

  QueueSession(config::HostConfig host, std::unique_ptr<Parts> parts, runtime::OpenStore store)
      : host_(std::move(host)), parts_(std::move(parts)), store_(std::move(store)) {}

  config::HostConfig host_;
  std::unique_ptr<Parts> parts_;
  runtime::OpenStore store_;
};

/// The half of a queue that --queue and --dlq name.
queue::QueueAddress queue_address(const Arguments& arguments);

}  // namespace sluice::cli
