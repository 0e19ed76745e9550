#include "dynamo/endpoints/endpoint_rules.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "dynamo/signing/uri.hpp"

namespace sluice::dynamo {
namespace {

struct Pattern {
  std::string_view prefix;  // what a region's name begins with; a word, a dash and digits follow
  Partition partition;
};

// From AWS's partitions.json. What is not here is "aws", whose pattern therefore need not be.
constexpr Pattern kPatterns[] = {
    {"cn-", {"aws-cn", "amazonaws.com.cn", "api.amazonwebservices.com.cn"}},
    {"us-gov-", {"aws-us-gov", "amazonaws.com", "api.aws"}},
    {"us-iso-", {"aws-iso", "c2s.ic.gov", "api.aws.ic.gov"}},
    {"us-isob-", {"aws-iso-b", "sc2s.sgov.gov", "api.aws.scloud"}},
    {"eu-isoe-", {"aws-iso-e", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"}},
    {"us-isof-", {"aws-iso-f", "csp.hci.ic.gov", "api.aws.hci.ic.gov"}},
    {"eusc-de-", {"aws-eusc", "amazonaws.eu", "api.amazonwebservices.eu"}},
};

constexpr Partition kAws = {"aws", "amazonaws.com", "api.aws"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_'; }

// "north-1"
bool is_word_and_number(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    return false;
  }
  const std::string_view word = text.substr(0, dash);
  const std::string_view number = text.substr(dash + 1);
  return !word.empty() && !number.empty() && std::all_of(word.begin(), word.end(), is_word) &&
         std::all_of(number.begin(), number.end(), is_digit);
}

constexpr std::string_view kLocalRegion = "local";
constexpr std::size_t kMaxHostLabel = 63;

Error refuse(std::string message) { return Error(ErrorKind::validation, std::move(message)); }

bool is_host_label(std::string_view text) {
  const auto alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !text.empty() && text.size() <= kMaxHostLabel && alphanumeric(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return alphanumeric(c) || c == '-'; });
}

Result<Endpoint> custom_endpoint(const EndpointSettings& settings) {
  if (settings.use_fips) {
    return refuse("Invalid Configuration: FIPS and custom endpoint are not supported");
  }
  if (settings.use_dual_stack) {
    return refuse("Invalid Configuration: Dualstack and custom endpoint are not supported");
  }
  const Result<UrlParts> url = parse_url(settings.endpoint);
  if (!url) {
    return refuse("the DynamoDB endpoint is wrong: " + url.error().message);
  }
  if (!url->query.empty()) {
    return refuse("the DynamoDB endpoint is wrong: it must not have a query");
  }
  const std::string_view suffix = partition_of(settings.region).dual_stack_dns_suffix;
  const std::string dual_stack_host = "dynamodb." + settings.region + "." + std::string(suffix);
  if (!settings.region.empty() && url->scheme == "https" && url->host == dual_stack_host && url->path == "/") {
    return refuse(
        "Endpoint override is not supported for dual-stack endpoints. Please enable dual-stack functionality by "
        "enabling the configuration. For more details, see: "
        "https://docs.aws.amazon.com/sdkref/latest/guide/feature-endpoints.html");
  }
  return Endpoint{.url = settings.endpoint, .signing_region = settings.region};
}

Result<Endpoint> local_endpoint(const EndpointSettings& settings) {
  if (settings.use_fips) {
    return refuse("Invalid Configuration: FIPS and local endpoint are not supported");
  }
  if (settings.use_dual_stack) {
    return refuse("Invalid Configuration: Dualstack and local endpoint are not supported");
  }
  return Endpoint{.url = "http://localhost:8000", .signing_region = "us-east-1"};
}

std::string suffix_of(const EndpointSettings& settings, const std::string& region) {
  const Partition& partition = partition_of(region);
  const std::string_view domain = settings.use_dual_stack ? partition.dual_stack_dns_suffix : partition.dns_suffix;
  return "." + region + "." + std::string(domain);
}

Endpoint regional_endpoint(const EndpointSettings& settings) {
  return Endpoint{.url = service_url("dynamodb", settings, settings.region), .signing_region = settings.region};
}

std::optional<Error> check(const EndpointSettings& settings) {
  if (!settings.region.empty() && !is_host_label(settings.region)) {
    return refuse("the AWS region is wrong: only letters, digits and dashes, such as eu-west-1");
  }
  const std::string& mode = settings.account_id_endpoint_mode;
  if (!mode.empty() && mode != "preferred" && mode != "required" && mode != "disabled") {
    return refuse("the account id endpoint mode is wrong: it must be preferred, required or disabled");
  }
  return std::nullopt;
}

Result<Endpoint> aws_endpoint(const EndpointSettings& settings, const std::optional<std::string>& account_id) {
  const Partition& partition = partition_of(settings.region);
  const std::string& mode = settings.account_id_endpoint_mode;
  const bool required = mode == "required";
  if (settings.use_fips) {
    if (required) {
      return refuse(
          "Invalid Configuration: AccountIdEndpointMode is required and FIPS is enabled, but FIPS account endpoints "
          "are not supported");
    }
    return regional_endpoint(settings);
  }
  if (partition.name != "aws" && required) {
    return refuse(
        "Invalid Configuration: AccountIdEndpointMode is required but account endpoints are not supported in this "
        "partition");
  }
  if (partition.name != "aws" || mode.empty() || mode == "disabled") {
    return regional_endpoint(settings);
  }
  if (account_id && !is_host_label(*account_id)) {
    return refuse("Credentials-sourced account ID parameter is invalid");
  }
  if (account_id) {
    return Endpoint{.url = "https://" + *account_id + ".ddb" + suffix_of(settings, settings.region),
                    .signing_region = settings.region};
  }
  if (required) {
    return refuse("AccountIdEndpointMode is required but no AccountID was provided or able to be loaded");
  }
  return regional_endpoint(settings);
}

}  // namespace

const Partition& partition_of(std::string_view region) {
  for (const auto& [prefix, partition] : kPatterns) {
    const bool named = region.substr(0, prefix.size()) == prefix && is_word_and_number(region.substr(prefix.size()));
    if (named || region == std::string(partition.name) + "-global") {
      return partition;
    }
  }
  return kAws;
}

std::string service_url(std::string_view service, const EndpointSettings& settings, const std::string& region) {
  // The US government's plain endpoints are FIPS endpoints already.
  const bool fips = settings.use_fips && (partition_of(region).name != "aws-us-gov" || settings.use_dual_stack);
  return "https://" + std::string(service) + (fips ? "-fips" : "") + suffix_of(settings, region);
}

Result<Endpoint> resolve_endpoint(const EndpointSettings& settings, const std::optional<std::string>& account_id) {
  if (std::optional<Error> problem = check(settings)) {
    return std::move(*problem);
  }
  if (!settings.endpoint.empty()) {
    return custom_endpoint(settings);
  }
  if (settings.region.empty()) {
    return refuse("Invalid Configuration: Missing Region");
  }
  return settings.region == kLocalRegion ? local_endpoint(settings) : aws_endpoint(settings, account_id);
}

}  // namespace sluice::dynamo
