#include <algorithm>
#include <array>

#include "dynamo/credentials/credentials_json.hpp"
#include "dynamo/credentials/fetch.hpp"
#include "dynamo/credentials/sources.hpp"
#include "dynamo/credentials/text.hpp"

namespace sluice::dynamo {
namespace {

constexpr FetchLimits kLimits{std::chrono::seconds(2), std::chrono::seconds(2), 3};
constexpr const char* kEcsOrigin = "http://169.254.170.2";

/// The host of a URL without user, port and brackets, in lower case; empty when there is none.
std::string host_of(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme == std::string_view::npos) {
    return {};
  }
  std::string_view authority = url.substr(scheme + 3);
  authority = authority.substr(0, authority.find_first_of("/?#\\"));
  if (authority.find('@') != std::string_view::npos) {
    return {};  // nobody names a user here but to deceive
  }
  if (authority.starts_with('[')) {
    return lower_case(authority.substr(1, authority.find(']') - 1));
  }
  return lower_case(authority.substr(0, authority.find(':')));
}

bool is_loopback_v4(std::string_view host) {
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

/// Plain HTTP may go only where it does not leave the machine: the token and the keys are in the clear.
bool is_allowed(const std::string& url) {
  constexpr std::array<std::string_view, 5> kHosts = {"localhost", "::1", "169.254.170.2", "169.254.170.23",
                                                      "fd00:ec2::23"};
  const std::string host = host_of(url);
  const std::string scheme = lower_case(url.substr(0, url.find("://")));
  if (host.empty() || (scheme != "https" && scheme != "http")) {
    return false;
  }
  return scheme == "https" || is_loopback_v4(host) || std::find(kHosts.begin(), kHosts.end(), host) != kHosts.end();
}

/// The agent's URL; NotConfigured and errors as in a Lookup.
std::variant<std::string, NotConfigured, Error> agent_url(const AwsEnvironment& environment) {
  if (const auto relative = environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")) {
    if (!relative->starts_with('/')) {
      return Error(ErrorKind::no_credentials, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with '/'");
    }
    return kEcsOrigin + *relative;
  }
  const auto full = environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (!full) {
    return NotConfigured{"neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor ..._FULL_URI is set"};
  }
  if (!is_allowed(*full)) {
    return Error(ErrorKind::no_credentials,
                 "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or http to this machine or a metadata address");
  }
  return *full;
}

/// The Authorization header; empty when none is asked for. The file is read each time, as its owner rotates it.
Result<std::string> authorization(const AwsEnvironment& environment) {
  std::string token;
  if (const auto path = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")) {
    const auto text = read_file(environment.expand(*path));
    if (!text) {
      return text.error();
    }
    if (!text->has_value()) {
      return Error(ErrorKind::no_credentials, *path + " (AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE) is not there");
    }
    token = **text;
  } else {
    token = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or("");
  }
  if (token.find_first_of("\r\n") != std::string::npos) {
    return Error(ErrorKind::no_credentials, "the container's authorization token contains a line break");
  }
  return token;
}

}  // namespace

Lookup container_credentials(const SourceContext& context, Deadline deadline) {
  auto url = agent_url(context.environment);
  if (auto* absent = std::get_if<NotConfigured>(&url)) {
    return std::move(*absent);
  }
  if (auto* failure = std::get_if<Error>(&url)) {
    return std::move(*failure);
  }
  auto token = authorization(context.environment);
  if (!token) {
    return token.error();
  }
  HttpRequest request{
      .method = "GET", .url = std::get<std::string>(url), .headers = {{"accept", "application/json"}}, .body = {}};
  if (!token->empty()) {
    request.headers.emplace_back("authorization", std::move(*token));
  }
  const auto answer = fetch(context.transport, context.clock, std::move(request), deadline, kLimits);
  if (!answer) {
    return Error(ErrorKind::no_credentials, "the container's credentials service: " + answer.error().message);
  }
  if (answer->status != 200) {
    return Error(ErrorKind::no_credentials, "the container's credentials service answered HTTP " +
                                                std::to_string(answer->status) + "; has the task or pod a role?");
  }
  auto credentials = credentials_from_json(answer->body, "", "the container's credentials service");
  if (!credentials) {
    return credentials.error();
  }
  credentials->source = "container";
  return std::move(*credentials);
}

}  // namespace sluice::dynamo
