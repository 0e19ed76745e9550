#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace sluice::runtime
