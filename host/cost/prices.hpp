#pragma once

#include <string>

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

}  // namespace sluice::cost
