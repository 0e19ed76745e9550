#include "dynamo/credentials/sources.hpp"

namespace sluice::dynamo {

Lookup static_profile_credentials(const SourceContext& context, const std::string& profile) {
  const IniSection* section = context.profiles.profile(profile);
  if (section == nullptr) {
    return NotConfigured{"there is no profile " + profile};
  }
  auto key = property(*section, "aws_access_key_id");
  auto secret = property(*section, "aws_secret_access_key");
  if (!key && !secret) {
    return NotConfigured{"profile " + profile + " has no aws_access_key_id"};
  }
  if (!key || !secret) {
    return Error(ErrorKind::no_credentials,
                 "profile " + profile + " has only one of aws_access_key_id and aws_secret_access_key; give both");
  }
  Credentials out;
  out.access_key_id = std::move(*key);
  out.secret_access_key = std::move(*secret);
  out.session_token = property(*section, "aws_session_token").value_or("");
  out.account_id = property(*section, "aws_account_id").value_or("");
  out.source = "profile " + profile;
  return out;
}

}  // namespace sluice::dynamo
