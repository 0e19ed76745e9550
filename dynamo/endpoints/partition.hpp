#pragma once

#include <string_view>

namespace sluice::dynamo {

/// A part of AWS with its own domains. Text lives for ever.
struct Partition {
  std::string_view name;                   ///< "aws-cn"
  std::string_view dns_suffix;             ///< "amazonaws.com.cn"
  std::string_view dual_stack_dns_suffix;  ///< "api.amazonwebservices.com.cn"
};

/// The partition of a region, known or of a partition's pattern; "aws" for any other name, as AWS has it. Every
/// partition supports FIPS and dual stack.
const Partition& partition_of(std::string_view region);

}  // namespace sluice::dynamo
