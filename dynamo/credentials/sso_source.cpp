#include <optional>

#include "base/text/percent.hpp"
#include "base/timestamp.hpp"
#include "dynamo/credentials/credentials_json.hpp"
#include "dynamo/credentials/fetch.hpp"
#include "dynamo/credentials/sources.hpp"
#include "dynamo/credentials/text.hpp"
#include "dynamo/settings.hpp"
#include "dynamo/signing/sha1.hpp"

namespace sluice::dynamo {
namespace {

/// What a profile says about its sign-in.
struct SignIn {
  std::string cache_key;  ///< the session's name, or the start URL of a profile without one
  std::string region;
  std::string account;
  std::string role;
};

Result<SignIn> sign_in_of(const Profiles& profiles, const std::string& profile, const IniSection& section) {
  const auto broken = [&](const std::string& what) {
    return Error(ErrorKind::no_credentials, "profile " + profile + ": " + what + "; run aws configure sso");
  };
  const IniSection* where = &section;
  const auto session = property(section, "sso_session");
  if (session) {
    where = profiles.sso_session(*session);
    if (where == nullptr) {
      return broken("there is no section [sso-session " + *session + "]");
    }
  }
  const auto start_url = property(*where, "sso_start_url");
  const auto region = property(*where, "sso_region");
  const auto account = property(section, "sso_account_id");
  const auto role = property(section, "sso_role_name");
  if (!start_url || !region || !account || !role) {
    return broken("of sso_start_url, sso_region, sso_account_id and sso_role_name not all are given");
  }
  if (percent_encoded(*region) != *region) {
    return broken("sso_region is not the name of a region");
  }
  return SignIn{session ? *session : *start_url, *region, *account, *role};
}

Result<std::string> cached_token(const SourceContext& context, const std::string& profile, const SignIn& sign_in) {
  const std::string mend = "; run aws sso login --profile " + profile;
  const auto path = context.environment.home() / ".aws" / "sso" / "cache" / (sha1_hex(sign_in.cache_key) + ".json");
  const auto text = read_file(path);
  if (!text) {
    return text.error();
  }
  if (!text->has_value()) {
    return Error(ErrorKind::no_credentials, "profile " + profile + " is not signed in" + mend);
  }
  std::string token = json_member(**text, "accessToken");
  const auto expires = parse_timestamp_or_end(json_member(**text, "expiresAt"));
  if (token.empty() || !expires || token.find_first_of("\r\n") != std::string::npos) {
    return Error(ErrorKind::no_credentials, "profile " + profile + ": " + path.string() + " cannot be read" + mend);
  }
  if (*expires <= context.clock.wall_now()) {
    return Error(ErrorKind::no_credentials, "the sign-in of profile " + profile + " has expired" + mend);
  }
  return token;
}

std::string portal_url(const SourceContext& context, const SignIn& sign_in) {
  std::string origin = configured_endpoint(context.environment, context.profiles, "sso")
                           .value_or("https://portal.sso." + sign_in.region + "." + dns_suffix(sign_in.region));
  while (origin.ends_with('/')) {
    origin.pop_back();
  }
  return origin + "/federation/credentials?role_name=" + percent_encoded(sign_in.role) +
         "&account_id=" + percent_encoded(sign_in.account);
}

}  // namespace

Lookup sso_credentials(const SourceContext& context, const std::string& profile, Deadline deadline) {
  const IniSection* section = context.profiles.profile(profile);
  if (section == nullptr || (!property(*section, "sso_session") && !property(*section, "sso_start_url"))) {
    return NotConfigured{"profile " + profile + " has no sso_session"};
  }
  const auto sign_in = sign_in_of(context.profiles, profile, *section);
  if (!sign_in) {
    return sign_in.error();
  }
  const auto token = cached_token(context, profile, *sign_in);
  if (!token) {
    return token.error();
  }
  const auto answer = fetch(context.transport, context.clock,
                            {.method = "GET",
                             .url = portal_url(context, *sign_in),
                             .headers = {{"x-amz-sso_bearer_token", *token}, {"accept", "application/json"}},
                             .body = {}},
                            deadline);
  const std::string source = "profile " + profile + ", IAM Identity Center";
  if (!answer) {
    return Error(ErrorKind::no_credentials, source + ": " + answer.error().message);
  }
  if (answer->status == 401) {
    return Error(ErrorKind::no_credentials,
                 source + " no longer accepts the sign-in; run aws sso login --profile " + profile);
  }
  if (answer->status != 200) {
    return Error(ErrorKind::no_credentials, source + " answered HTTP " + std::to_string(answer->status) +
                                                "; may you use role " + sign_in->role + " in account " +
                                                sign_in->account + "?");
  }
  auto credentials = credentials_from_json(answer->body, "roleCredentials", source);
  if (!credentials) {
    return credentials.error();
  }
  credentials->account_id = sign_in->account;
  return std::move(*credentials);
}

}  // namespace sluice::dynamo
