#include "base/timestamp.hpp"
#include "dynamo/credentials/sources.hpp"

namespace sluice::dynamo {

Lookup environment_credentials(const AwsEnvironment& environment) {
  auto key = environment.get("AWS_ACCESS_KEY_ID");
  auto secret = environment.get("AWS_SECRET_ACCESS_KEY");
  if (!key && !secret) {
    return NotConfigured{"AWS_ACCESS_KEY_ID is not set"};
  }
  if (!key || !secret) {
    return Error(ErrorKind::no_credentials, std::string(key ? "AWS_ACCESS_KEY_ID is set but AWS_SECRET_ACCESS_KEY"
                                                            : "AWS_SECRET_ACCESS_KEY is set but AWS_ACCESS_KEY_ID") +
                                                " is not; set both or neither");
  }
  Credentials out;
  out.access_key_id = std::move(*key);
  out.secret_access_key = std::move(*secret);
  const auto token = environment.get("AWS_SESSION_TOKEN");
  out.session_token = token ? *token : environment.get("AWS_SECURITY_TOKEN").value_or("");
  out.account_id = environment.get("AWS_ACCOUNT_ID").value_or("");
  out.source = "environment";
  if (const auto expiration = environment.get("AWS_CREDENTIAL_EXPIRATION")) {
    out.expires_at = parse_timestamp_or_end(*expiration);
    if (!out.expires_at) {
      return Error(ErrorKind::no_credentials, "AWS_CREDENTIAL_EXPIRATION is not a time like 2026-11-20T23:14:00Z");
    }
  }
  return out;
}

}  // namespace sluice::dynamo
