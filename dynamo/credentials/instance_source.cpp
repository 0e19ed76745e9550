#include "base/text/percent.hpp"
#include "dynamo/credentials/credentials_json.hpp"
#include "dynamo/credentials/fetch.hpp"
#include "dynamo/credentials/sources.hpp"
#include "dynamo/credentials/text.hpp"

namespace sluice::dynamo {
namespace {

// Off EC2 nothing answers at the address: a laptop must not wait for it.
constexpr FetchLimits kLimits{std::chrono::seconds(1), std::chrono::seconds(1), 1};
constexpr const char* kRolePath = "/latest/meta-data/iam/security-credentials/";

std::string metadata_origin(const AwsEnvironment& environment) {
  if (auto named = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT")) {
    while (named->ends_with('/')) {
      named->pop_back();
    }
    return *named;
  }
  const auto mode = lower_case(environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE").value_or(""));
  return mode == "ipv6" ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
}

bool is_clean_token(const std::string& token) {
  return !token.empty() && token.find_first_of("\r\n") == std::string::npos;
}

}  // namespace

Lookup instance_credentials(const SourceContext& context, Deadline deadline) {
  if (context.environment.is_true("AWS_EC2_METADATA_DISABLED")) {
    return NotConfigured{"AWS_EC2_METADATA_DISABLED is true"};
  }
  const std::string origin = metadata_origin(context.environment);
  const auto ask = [&](HttpRequest request) {
    return fetch(context.transport, context.clock, std::move(request), deadline, kLimits);
  };
  const auto token = ask({.method = "PUT",
                          .url = origin + "/latest/api/token",
                          .headers = {{"x-aws-ec2-metadata-token-ttl-seconds", "21600"}},
                          .body = {}});
  if (!token) {
    return NotConfigured{"no EC2 instance metadata here (" + token.error().message + ")"};
  }
  if (token->status != 200 || !is_clean_token(token->body)) {
    return NotConfigured{"the instance metadata at " + origin + " gave no session token (HTTP " +
                         std::to_string(token->status) + ")"};
  }
  const Headers with_token = {{"x-aws-ec2-metadata-token", token->body}};
  const auto roles = ask({.method = "GET", .url = origin + kRolePath, .headers = with_token, .body = {}});
  if (!roles) {
    return Error(ErrorKind::no_credentials, "the instance metadata: " + roles.error().message);
  }
  const std::string role(trim(roles->body.substr(0, roles->body.find('\n'))));
  if (roles->status == 404 || (roles->status == 200 && role.empty())) {
    return NotConfigured{"this EC2 instance has no role"};
  }
  if (roles->status != 200) {
    return Error(ErrorKind::no_credentials,
                 "the instance metadata answered HTTP " + std::to_string(roles->status) + " for the role's name");
  }
  const auto answer =
      ask({.method = "GET", .url = origin + kRolePath + percent_encoded(role), .headers = with_token, .body = {}});
  if (!answer || answer->status != 200) {
    return Error(ErrorKind::no_credentials,
                 "the instance metadata gave no credentials for role " + role + ": " +
                     (answer ? "HTTP " + std::to_string(answer->status) : answer.error().message));
  }
  auto credentials = credentials_from_json(answer->body, "", "the instance metadata");
  if (!credentials) {
    return credentials.error();
  }
  credentials->source = "instance role " + role;
  return std::move(*credentials);
}

}  // namespace sluice::dynamo
