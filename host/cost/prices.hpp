#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "host/cost/spent.hpp"

namespace sluice::cost {

/// A month has so many hours on AWS's bills.
inline constexpr double kHoursPerMonth = 730;

/// What units cost, in one currency and of one day. A value.
class Prices {
 public:
  explicit Prices(config::CostConfig config = {}) : config_(std::move(config)) {}

  const std::string& currency() const { return config_.currency; }
  const config::CostConfig& config() const { return config_; }

  double of(const Spent& spent) const;
  double of_sqs_requests(double requests) const;
  double of_sqs_fifo_requests(double requests) const;
  /// Of what lies in tables and their indexes for a month.
  double of_storage(double bytes) const;

  /// "$1.28", "EUR 0.000004": two digits that say something at least.
  std::string text(double money) const;
  /// "DynamoDB on demand in us-east-1 as of 2026-11-01", or "[cost] of the host file, as of 2026-11-20".
  std::string origin() const;

 private:
  config::CostConfig config_;
};

/// What messages would have cost in one kind of queue, drained by a host that batches. A value.
struct LayoutCost {
  std::string_view layout;  ///< "leased", "dynamomq", "sqs", "sqlite"
  std::string_view what;    ///< for people
  Spent worked{};           ///< by who works: claims and settlements
  Spent whole{};            ///< sending included
  double money_worked = 0;
  double storage = 0;           ///< money for what lay there until it was handed out
  double money_whole = 0;       ///< sending and storage included
  double money_whole_most = 0;  ///< SQS asked message by message; otherwise the same
};

/// For the messages of `usage`, by published rules: DynamoMQ's table, leased, SQS, SQLite. Pure function.
std::vector<LayoutCost> layouts_of(const Usage& usage, const Prices& prices);

}  // namespace sluice::cost
