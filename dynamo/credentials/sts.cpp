#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/text/number.hpp"
#include "base/text/percent.hpp"
#include "base/timestamp.hpp"
#include "dynamo/codec/responses.hpp"
#include "dynamo/codec/xml.hpp"
#include "dynamo/credentials/sources.hpp"
#include "dynamo/endpoints/endpoint_rules.hpp"
#include "dynamo/server_time.hpp"
#include "dynamo/settings.hpp"
#include "dynamo/signing/signer.hpp"

namespace sluice::dynamo {
namespace {

constexpr const char* kVersion = "2011-06-15";
constexpr const char* kDefaultRegion = "us-east-1";

/// "123456789012" of "arn:aws:sts::123456789012:assumed-role/name/session".
std::string account_of(std::string_view arn) {
  for (int field = 0; field < 4; ++field) {
    const auto colon = arn.find(':');
    if (colon == std::string_view::npos) {
      return {};
    }
    arn.remove_prefix(colon + 1);
  }
  const std::string account(arn.substr(0, arn.find(':')));
  const bool digits = account.size() == 12 && account.find_first_not_of("0123456789") == std::string::npos;
  return digits ? account : std::string();
}

struct StsEndpoint {
  std::string url;
  std::string region;
};

Result<StsEndpoint> sts_endpoint(const SourceContext& context) {
  SLUICE_TRY(settings, resolve_settings(context.environment, context.profiles));
  const std::string& wanted = settings->region.empty() ? context.region : settings->region;
  const std::string region = wanted.empty() ? kDefaultRegion : wanted;
  if (auto url = configured_endpoint(context.environment, context.profiles, "sts")) {
    return StsEndpoint{std::move(*url), region};
  }
  if (percent_encoded(region) != region) {
    return Error(ErrorKind::validation, "the region \"" + region + "\" is not the name of one");
  }
  return StsEndpoint{service_url("sts", *settings, region), region};
}

std::string form_body(const StsCall& call) {
  std::string body = "Action=" + percent_encoded(call.action) + "&Version=" + kVersion;
  for (const auto& [name, value] : call.parameters) {
    body += '&';
    body += percent_encoded(name);
    body += '=';
    body += percent_encoded(value);
  }
  return body;
}

struct WebIdentity {
  std::string token_file;
  std::string role;
  std::string session;  ///< empty: ours
  std::string source;
};

Lookup assume(const SourceContext& context, const WebIdentity& identity, Deadline deadline) {
  // Read each time: the token is replaced about every hour.
  SLUICE_TRY(text, read_file(context.environment.expand(identity.token_file)));
  const std::string token(trim(text->value_or("")));
  if (token.empty()) {
    return no_credentials(identity.source + ": the web identity token " + identity.token_file +
                          (text->has_value() ? " is empty" : " is not there"));
  }
  StsCall call;
  call.action = "AssumeRoleWithWebIdentity";
  call.source = identity.source;
  call.parameters = {
      {"RoleArn", identity.role},
      {"RoleSessionName", identity.session.empty() ? default_session_name(context.clock) : identity.session},
      {"WebIdentityToken", token}};
  auto credentials = call_sts(context, call, deadline);
  return credentials ? Lookup(std::move(*credentials)) : Lookup(credentials.error());
}

constexpr std::size_t kMaxRoleChain = 8;
constexpr int kShortestSession = 900;
constexpr int kLongestSession = 43'200;

Error bad_profile(const std::string& profile, const std::string& what) {
  return {ErrorKind::no_credentials, "profile " + profile + ": " + what};
}

/// Follows a chain of profiles down to keys, then assumes role after role on the way back. A value; used once.
class RoleChain {
 public:
  RoleChain(const SourceContext& context, Deadline deadline) : context_(context), deadline_(deadline) {}

  Lookup assume(const std::string& profile) {
    const IniSection* section = context_.profiles.profile(profile);
    const auto role = section == nullptr ? std::nullopt : property(*section, "role_arn");
    if (!role) {
      return NotConfigured{"profile " + profile + " has no role_arn"};
    }
    const auto source_profile = property(*section, "source_profile");
    const auto credential_source = property(*section, "credential_source");
    if (!source_profile && !credential_source) {
      if (property(*section, "web_identity_token_file")) {
        return NotConfigured{"profile " + profile + " has its role by web identity"};
      }
      return bad_profile(profile, "role_arn needs a source_profile or a credential_source beside it");
    }
    if (source_profile && credential_source) {
      return bad_profile(profile, "has both source_profile and credential_source; keep one of them");
    }
    if (property(*section, "mfa_serial")) {
      return bad_profile(profile,
                         "mfa_serial asks for a code from a person, which a host cannot give; use a role without MFA");
    }
    Lookup base =
        source_profile ? from_profile(profile, *source_profile) : from_named_source(profile, *credential_source);
    if (auto* credentials = std::get_if<Credentials>(&base)) {
      return call(profile, *section, *role, *credentials);
    }
    return base;
  }

 private:
  Lookup from_profile(const std::string& profile, const std::string& source) {
    if (context_.profiles.profile(source) == nullptr) {
      return bad_profile(profile, "its source_profile " + source + " does not exist");
    }
    visited_.push_back(profile);
    // A profile may name itself when it has keys of its own.
    Lookup keys = static_profile_credentials(context_, source);
    if (!std::holds_alternative<NotConfigured>(keys)) {
      return keys;
    }
    if (std::find(visited_.begin(), visited_.end(), source) != visited_.end()) {
      return bad_profile(profile, "its source_profile " + source + " leads back to itself");
    }
    if (visited_.size() >= kMaxRoleChain) {
      return bad_profile(profile, "more than " + std::to_string(kMaxRoleChain) + " roles stand behind each other");
    }
    return from_any(profile, source);
  }

  Lookup from_any(const std::string& profile, const std::string& source) {
    const auto absent = [](const Lookup& found) { return std::holds_alternative<NotConfigured>(found); };
    Lookup found = assume(source);
    found = absent(found) ? web_identity_credentials(context_, source, deadline_) : std::move(found);
    found = absent(found) ? sso_credentials(context_, source, deadline_) : std::move(found);
    found = absent(found) ? process_credentials(context_, source, deadline_) : std::move(found);
    return absent(found) ? bad_profile(profile, "its source_profile " + source + " has no credentials")
                         : std::move(found);
  }

  Lookup from_named_source(const std::string& profile, const std::string& source) {
    const std::string name = lower_case(source);
    Lookup found = NotConfigured{};
    if (name == "environment") {
      found = environment_credentials(context_.environment);
    } else if (name == "ecscontainer") {
      found = container_credentials(context_, deadline_);
    } else if (name == "ec2instancemetadata") {
      found = instance_credentials(context_, deadline_);
    } else {
      return bad_profile(profile, "credential_source " + source +
                                      " is not known; use Environment, EcsContainer or Ec2InstanceMetadata");
    }
    if (const auto* absent = std::get_if<NotConfigured>(&found)) {
      return bad_profile(profile, "credential_source " + source + " has no credentials: " + absent->reason);
    }
    return found;
  }

  Lookup call(const std::string& profile, const IniSection& section, const std::string& role,
              const Credentials& signer) {
    StsCall call;
    call.action = "AssumeRole";
    call.signer = &signer;
    call.source = "profile " + profile + ", role " + role;
    call.parameters = {
        {"RoleArn", role},
        {"RoleSessionName", property(section, "role_session_name").value_or(default_session_name(context_.clock))}};
    if (const auto external_id = property(section, "external_id")) {
      call.parameters.emplace_back("ExternalId", *external_id);
    }
    if (const auto text = property(section, "duration_seconds")) {
      const int seconds = parse_number<int>(*text).value_or(0);
      if (seconds < kShortestSession || seconds > kLongestSession) {
        return bad_profile(profile, "duration_seconds must be a number from 900 to 43200");
      }
      call.parameters.emplace_back("DurationSeconds", std::to_string(seconds));
    }
    auto credentials = call_sts(context_, call, deadline_);
    return credentials ? Lookup(std::move(*credentials)) : Lookup(credentials.error());
  }

  const SourceContext& context_;
  Deadline deadline_;
  std::vector<std::string> visited_;
};

}  // namespace

Result<Credentials> parse_sts_answer(std::string_view xml, const std::string& source) {
  const auto element = xml_inside(xml, "Credentials");
  const std::string_view part = element.value_or("");
  auto key = xml_text(part, "AccessKeyId");
  auto secret = xml_text(part, "SecretAccessKey");
  auto token = xml_text(part, "SessionToken");
  const auto expiration = parse_timestamp_or_end(xml_text(part, "Expiration").value_or(""));
  if (!key || !secret || !token || !expiration || key->empty() || secret->empty()) {
    return no_credentials("STS gave an answer for " + source + " that cannot be read");
  }
  Credentials out;
  out.access_key_id = std::move(*key);
  out.secret_access_key = std::move(*secret);
  out.session_token = std::move(*token);
  out.expires_at = expiration;
  out.account_id = account_of(xml_text(xml_inside(xml, "AssumedRoleUser").value_or(""), "Arn").value_or(""));
  out.source = source;
  return out;
}

Error parse_sts_error(std::string_view xml) {
  Error refusal;
  const auto error = xml_inside(xml, "Error");
  if (const auto code = xml_text(error.value_or(""), "Code")) {
    refusal.exception_name = *code;
    refusal.message = one_line(*code + ": " + xml_text(*error, "Message").value_or("no reason was given"));
  }
  return refusal;
}

std::string default_session_name(const Clock& clock) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(clock.wall_now().time_since_epoch()).count();
  return "sluice-" + std::to_string(seconds);
}

Result<Credentials> call_sts(const SourceContext& context, const StsCall& call, Deadline deadline) {
  SLUICE_TRY(endpoint, sts_endpoint(context));
  const Signer signer(SigningOptions{.region = endpoint->region, .service = "sts"});
  ClockSkew skew;
  for (int tries = 1;; ++tries) {
    HttpRequest request;
    request.url = endpoint->url;
    request.headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
    request.body = form_body(call);
    const WallTime signed_at = skew.corrected(context.clock.wall_now());
    if (call.signer != nullptr) {
      if (auto failure = signer.sign(request, *call.signer, signed_at)) {
        return no_credentials(call.source + ": cannot be asked for: " + failure->message);
      }
    }
    const auto answer = fetch(context.transport, context.clock, std::move(request), deadline);
    if (!answer) {
      return no_credentials(call.source + ": " + answer.error().message);
    }
    if (answer->status == 200) {
      SLUICE_TRY(credentials, parse_sts_answer(answer->body, call.source));
      // As this machine's clock will show it.
      *credentials->expires_at -= skew.corrected({}) - WallTime();
      return credentials;
    }
    const Error refusal = parse_sts_error(answer->body);
    const std::string* const date = answer->header("date");
    if (call.signer == nullptr || tries > 1 || date == nullptr ||
        !skew.learn(refusal, *date, context.clock.wall_now(), signed_at)) {
      return no_credentials(call.source + ": STS refused " + call.action + " (HTTP " + std::to_string(answer->status) +
                            (refusal.message.empty() ? ")" : "): " + refusal.message) +
                            "; check the role's name and its trust policy");
    }
  }
}

Lookup web_identity_credentials(const SourceContext& context, Deadline deadline) {
  const auto token_file = context.environment.get("AWS_WEB_IDENTITY_TOKEN_FILE");
  if (!token_file) {
    return NotConfigured{"AWS_WEB_IDENTITY_TOKEN_FILE is not set"};
  }
  const auto role = context.environment.get("AWS_ROLE_ARN");
  if (!role) {
    return no_credentials("AWS_WEB_IDENTITY_TOKEN_FILE is set but AWS_ROLE_ARN is not; set both");
  }
  return assume(context,
                {*token_file, *role, context.environment.get("AWS_ROLE_SESSION_NAME").value_or(""),
                 "web identity, role " + *role},
                deadline);
}

Lookup web_identity_credentials(const SourceContext& context, const std::string& profile, Deadline deadline) {
  const IniSection* section = context.profiles.profile(profile);
  const auto token_file = section == nullptr ? std::nullopt : property(*section, "web_identity_token_file");
  if (!token_file) {
    return NotConfigured{"profile " + profile + " has no web_identity_token_file"};
  }
  const auto role = property(*section, "role_arn");
  if (!role) {
    return no_credentials("profile " + profile + ": web_identity_token_file needs a role_arn beside it");
  }
  return assume(context,
                {*token_file, *role, property(*section, "role_session_name").value_or(""),
                 "profile " + profile + ", web identity, role " + *role},
                deadline);
}

Lookup assume_role_credentials(const SourceContext& context, const std::string& profile, Deadline deadline) {
  return RoleChain(context, deadline).assume(profile);
}

}  // namespace sluice::dynamo
