#pragma once

#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "host/observe/metrics.hpp"
#include "host/queue/store.hpp"
#include "host/runtime/dynamodb_cost.hpp"

namespace sluice::runtime {

/// A store with all it stands on. Movable; the store itself stays where it is.
class OpenStore {
 public:
  OpenStore(OpenStore&&) noexcept;
  OpenStore& operator=(OpenStore&&) noexcept;
  ~OpenStore();

  queue::Store& store();
  /// What it has spent at DynamoDB so far; nothing for a store that is not there.
  std::optional<DynamoDbCost> cost() const;

 private:
  friend Result<OpenStore> open_store(const config::HostConfig& host, const Clock& clock, Random& random,
                                      observe::Metrics* metrics);
  class Parts;
  explicit OpenStore(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// Opens the store that the host file names. SQLite: opens or makes the file; DynamoDB: makes no request yet. The
/// references, and `metrics` unless it is null, must outlive the store.
Result<OpenStore> open_store(const config::HostConfig& host, const Clock& clock, Random& random,
                             observe::Metrics* metrics);

}  // namespace sluice::runtime
