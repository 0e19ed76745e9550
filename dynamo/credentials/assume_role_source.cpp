#include <algorithm>
#include <charconv>
#include <vector>

#include "dynamo/credentials/sources.hpp"
#include "dynamo/credentials/sts.hpp"
#include "dynamo/credentials/text.hpp"

namespace sluice::dynamo {
namespace {

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
    Lookup found = assume(source);
    if (std::holds_alternative<NotConfigured>(found)) {
      found = web_identity_credentials(context_, source, deadline_);
    }
    if (std::holds_alternative<NotConfigured>(found)) {
      found = sso_credentials(context_, source, deadline_);
    }
    if (std::holds_alternative<NotConfigured>(found)) {
      found = process_credentials(context_, source, deadline_);
    }
    if (std::holds_alternative<NotConfigured>(found)) {
      return bad_profile(profile, "its source_profile " + source + " has no credentials");
    }
    return found;
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
      int seconds = 0;
      const auto [end, failure] = std::from_chars(text->data(), text->data() + text->size(), seconds);
      if (failure != std::errc() || end != text->data() + text->size() || seconds < kShortestSession ||
          seconds > kLongestSession) {
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

Lookup assume_role_credentials(const SourceContext& context, const std::string& profile, Deadline deadline) {
  return RoleChain(context, deadline).assume(profile);
}

}  // namespace sluice::dynamo
