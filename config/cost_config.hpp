#pragma once

#include <cstdint>
#include <string>

namespace sluice::config {

/// What capacity costs, and by which attribute costs are told apart: [cost]. A value; the prices are those of DynamoDB
/// on demand in us-east-1 where the file gives none.
struct CostConfig {
  std::string currency = "USD";
  std::string as_of = "2026-11-01";  ///< the day that the prices are of
  double write_unit = 0.625;         ///< a million write request units
  double read_unit = 0.125;          ///< a million read request units
  double storage = 0.25;             ///< a GB and month
  double sqs_request = 0.40;         ///< a million requests to SQS standard, for comparisons alone
  double sqs_fifo_request = 0.50;    ///< a million requests to SQS FIFO, the same
  bool own_prices = false;           ///< the file gives some
  std::string attribute;             ///< of messages, such as "tenant"; empty: none
  std::uint32_t top = 20;            ///< so many of its values are told one by one

  friend bool operator==(const CostConfig&, const CostConfig&) = default;
};

}  // namespace sluice::config
