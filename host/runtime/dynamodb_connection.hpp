#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "dynamo/client.hpp"
#include "dynamo/connection.hpp"
#include "host/cost/cost_book.hpp"
#include "host/observe/metrics.hpp"

namespace sluice::runtime {

/// What the DynamoDB client has spent. A value.
struct DynamoDbCost {
  std::uint64_t requests = 0;
  double read_units = 0;
  double write_units = 0;

  friend DynamoDbCost operator+(const DynamoDbCost& left, const DynamoDbCost& right) {
    return {left.requests + right.requests, left.read_units + right.read_units, left.write_units + right.write_units};
  }

  /// "12 requests, 11.5 RCU, 400.0 WCU (0.120, 0.115 and 4.00 a claim)"; the share of each only where there are any.
  std::string text(std::uint64_t count, std::string_view noun) const;
};

/// A DynamoDB client with all it stands on, which counts what it spends.
///
/// Thread-safe as the client is. Destruction ends what is under way.
class DynamoDbConnection {
 public:
  struct Options {
    std::string region{};                         ///< empty: from AWS's usual places
    std::string endpoint{};                       ///< empty: the same, else AWS's own
    std::string region_setting{};                 ///< how somebody names a region, for the message that none is named
    observe::Metrics* metrics = nullptr;          ///< told of every request; may be null
    cost::CostBook* book = nullptr;               ///< told of what every answer reports; may be null
    std::map<std::string, std::string> queues{};  ///< by table, where the queue's name is another than the table's
  };

  /// Where the host file says that a store is, and the tables of its queues. `store` is its name, empty for the default
  /// one.
  static Options options_of(const config::HostConfig& host, const std::string& store);

  /// Makes no request yet. An Error (invalid) when neither a region nor an endpoint is named anywhere, or AWS's files
  /// cannot be read. The references, the metrics and the book must outlive the
  /// connection.
  static Result<std::unique_ptr<DynamoDbConnection>> open(const Options& options, const Clock& clock, Random& random);
  DynamoDbConnection(const DynamoDbConnection&) = delete;
  DynamoDbConnection& operator=(const DynamoDbConnection&) = delete;

  dynamo::Client& client() { return connection_->client(); }
  /// As it was named; empty where an endpoint makes up for it.
  const std::string& region() const { return connection_->region(); }
  /// What all requests so far came to.
  DynamoDbCost cost() const;

 private:
  explicit DynamoDbConnection(const Options& options)
      : metrics_(options.metrics), book_(options.book), queues_(options.queues) {}

  void count(const dynamo::CallRecord& call);

  // Fixed after construction.
  observe::Metrics* const metrics_;
  cost::CostBook* const book_;
  const std::map<std::string, std::string> queues_;
  // Guarded by mutex_.
  mutable Mutex mutex_;
  DynamoDbCost cost_ SLUICE_GUARDED_BY(mutex_);

  // Last: its destruction ends the calls that `count` is told of.
  std::unique_ptr<dynamo::Connection> connection_;
};

}  // namespace sluice::runtime
