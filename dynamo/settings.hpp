#pragma once

#include <optional>
#include <string>

#include "dynamo/credentials/aws_environment.hpp"
#include "dynamo/credentials/profiles.hpp"
#include "dynamo/error.hpp"

namespace sluice::dynamo {

/// What AWS's usual places say about a client, besides credentials. A value.
struct AwsSettings {
  std::string profile;   ///< in use
  std::string region;    ///< empty: named nowhere
  std::string endpoint;  ///< of DynamoDB; empty: AWS's own
  bool use_fips = false;
  bool use_dual_stack = false;
  std::string account_id_endpoint_mode = "preferred";
};

/// Reads them: the environment wins over the profile. ErrorKind::no_credentials for files that cannot be read,
/// ErrorKind::validation for a profile or value that does not exist. Read once, at start.
Result<AwsSettings> resolve_settings(const AwsEnvironment& environment);
Result<AwsSettings> resolve_settings(const AwsEnvironment& environment, const Profiles& profiles);

/// AWS_REGION, AWS_DEFAULT_REGION, then the profile's region. Nothing when none is named.
std::optional<std::string> resolve_region(const AwsEnvironment& environment, const Profiles& profiles);

/// The endpoint that is configured for a service, such as "dynamodb" or "sts": AWS_ENDPOINT_URL_<SERVICE>,
/// AWS_ENDPOINT_URL, the profile's services section, its endpoint_url.
std::optional<std::string> configured_endpoint(const AwsEnvironment& environment, const Profiles& profiles,
                                               const std::string& service);

/// The domain of a region's partition: "amazonaws.com", "amazonaws.com.cn", ...
std::string dns_suffix(const std::string& region);

}  // namespace sluice::dynamo
