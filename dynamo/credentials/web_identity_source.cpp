#include "dynamo/credentials/sources.hpp"
#include "dynamo/credentials/sts.hpp"
#include "dynamo/credentials/text.hpp"

namespace sluice::dynamo {
namespace {

struct WebIdentity {
  std::string token_file;
  std::string role;
  std::string session;  ///< empty: ours
  std::string source;
};

Lookup assume(const SourceContext& context, const WebIdentity& identity, Deadline deadline) {
  // Read each time: the token is replaced about every hour.
  const auto text = read_file(context.environment.expand(identity.token_file));
  if (!text) {
    return text.error();
  }
  const std::string token(trim(text->value_or("")));
  if (token.empty()) {
    return Error(ErrorKind::no_credentials, identity.source + ": the web identity token " + identity.token_file +
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

}  // namespace

Lookup web_identity_credentials(const SourceContext& context, Deadline deadline) {
  const auto token_file = context.environment.get("AWS_WEB_IDENTITY_TOKEN_FILE");
  if (!token_file) {
    return NotConfigured{"AWS_WEB_IDENTITY_TOKEN_FILE is not set"};
  }
  const auto role = context.environment.get("AWS_ROLE_ARN");
  if (!role) {
    return Error(ErrorKind::no_credentials, "AWS_WEB_IDENTITY_TOKEN_FILE is set but AWS_ROLE_ARN is not; set both");
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
    return Error(ErrorKind::no_credentials,
                 "profile " + profile + ": web_identity_token_file needs a role_arn beside it");
  }
  return assume(context,
                {*token_file, *role, property(*section, "role_session_name").value_or(""),
                 "profile " + profile + ", web identity, role " + *role},
                deadline);
}

}  // namespace sluice::dynamo
