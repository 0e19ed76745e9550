#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "dynamo/credentials/aws_environment.hpp"
#include "dynamo/credentials/credentials.hpp"
#include "dynamo/credentials/profiles.hpp"
#include "dynamo/transport/http_transport.hpp"

namespace sluice::dynamo {

/// Why a source does not apply here, for people: "AWS_ACCESS_KEY_ID is not set".
struct NotConfigured {
  std::string reason;
};

/// What a source has: credentials, nothing to do with us, or an error. A source that is configured but fails ends the
/// search: silently going on would run the host under an identity that nobody meant.
using Lookup = std::variant<Credentials, NotConfigured, Error>;

/// What sources look at. The references must outlive the lookup.
struct SourceContext {
  const AwsEnvironment& environment;
  const Profiles& profiles;
  HttpTransport& transport;
  const Clock& clock;
};

// Each source is a function that looks once, blocks, and keeps nothing; one file each. `profile` is a profile's name.

/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_ACCOUNT_ID, AWS_CREDENTIAL_EXPIRATION.
Lookup environment_credentials(const AwsEnvironment& environment);
/// The profile's own keys.
Lookup static_profile_credentials(const SourceContext& context, const std::string& profile);
/// A role (role_arn) that is assumed with the credentials of source_profile or credential_source.
Lookup assume_role_credentials(const SourceContext& context, const std::string& profile, Deadline deadline);
/// A role for a token in a file, as EKS provides: AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN.
Lookup web_identity_credentials(const SourceContext& context, Deadline deadline);
/// The same from the profile's web_identity_token_file and role_arn.
Lookup web_identity_credentials(const SourceContext& context, const std::string& profile, Deadline deadline);
/// IAM Identity Center, with the token that `aws sso login` left in ~/.aws/sso/cache.
Lookup sso_credentials(const SourceContext& context, const std::string& profile, Deadline deadline);
/// The profile's credential_process.
Lookup process_credentials(const SourceContext& context, const std::string& profile, Deadline deadline);
/// The container agent of ECS or EKS.
Lookup container_credentials(const SourceContext& context, Deadline deadline);
/// The metadata service of an EC2 instance, version 2.
Lookup instance_credentials(const SourceContext& context, Deadline deadline);

}  // namespace sluice::dynamo
