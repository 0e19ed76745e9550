#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "dynamo/error.hpp"

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

/// What AWS's endpoint rules for DynamoDB look at besides the account; but for a table's ARN and its vector search,
/// which no request of ours has.
struct EndpointSettings {
  std::string region{};    ///< empty: none is named
  std::string endpoint{};  ///< a full URL from configuration, which wins over everything; empty: AWS's own
  bool use_fips = false;
  bool use_dual_stack = false;
  /// "preferred", "required" or "disabled"; empty: account endpoints are not used.
  std::string account_id_endpoint_mode = "preferred";
};

struct Endpoint {
  std::string url;             ///< without a slash at its end, unless configured so
  std::string signing_region;  ///< empty only for a custom endpoint without a region
};

/// Resolves by AWS's rules. `account_id`: of the credentials; nothing: not known; an empty one is an error, as AWS's
/// rules have it. ErrorKind::validation for combinations that have no endpoint (in AWS's words), a region that is no
/// host label, an unknown mode, and a custom endpoint that is not an http(s) URL. Pure.
Result<Endpoint> resolve_endpoint(const EndpointSettings& settings,
                                  const std::optional<std::string>& account_id = std::nullopt);

/// AWS's own address of a service in a region, such as "https://sts-fips.us-east-1.amazonaws.com". Pure.
std::string service_url(std::string_view service, const EndpointSettings& settings, const std::string& region);

}  // namespace sluice::dynamo
