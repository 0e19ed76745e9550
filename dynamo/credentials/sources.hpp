#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "dynamo/credentials/credentials.hpp"
#include "dynamo/error.hpp"
#include "dynamo/settings.hpp"
#include "dynamo/transport/http_transport.hpp"

namespace sluice::dynamo {

/// Splits a command line into its arguments: blanks part them, single quotes keep everything, double quotes everything
/// but \" and \\, a backslash the next sign. No expansion of any kind. ErrorKind::no_credentials for a quote that never
/// ends. Pure.
Result<std::vector<std::string>> split_command(std::string_view text);

/// Runs a program without a shell, with no input, and gives what it writes to its output; its errors go where ours go.
/// Blocks until it has ended or the deadline passes, then it is killed with all that it started in its group.
/// ErrorKind::no_credentials when it cannot be started, fails, writes more than `max_output` bytes or takes too long;
/// the output is never part of the message.
Result<std::string> run_program(const std::vector<std::string>& arguments, std::size_t max_output, const Clock& clock,
                                Deadline deadline);

/// How long, and how often, one of the services that hand out credentials is asked.
struct FetchLimits {
  Duration timeout = std::chrono::seconds(10);  ///< of one attempt
  Duration connect_timeout = std::chrono::seconds(3);
  int attempts = 2;  ///< on a failed connection, a time-out or a 5xx; asking again does no harm
};

/// Sends a request and waits for its answer.
HttpResult fetch(HttpTransport& transport, const Clock& clock, HttpRequest request, Deadline deadline,
                 const FetchLimits& limits = {});

/// Reads the JSON in which the container agent, the instance metadata, a credential_process and IAM Identity Center
/// hand out keys; they differ in how names begin, in "Token" for "SessionToken", and in the form of the expiry.
/// `within`: the pointer to the object that has them, empty for the answer itself. ErrorKind::no_credentials, with no
/// word of the content, for anything else. `source` names where it came from. Pure.
Result<Credentials> credentials_from_json(std::string_view text, const std::string& within, const std::string& source);

/// A text or number in JSON by its pointer, as text; empty when it is not there or `text` is no JSON. Pure.
std::string json_text(std::string_view text, std::string_view pointer);

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
  const std::string& region;  ///< if environment and profiles name none; may be empty
  HttpTransport& transport;
  const Clock& clock;
};

// Each source is a function that looks once, blocks, and keeps nothing. `profile` is a profile's name.

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

/// A call of the Security Token Service that ends in credentials.
struct StsCall {
  std::string action;  ///< "AssumeRole", "AssumeRoleWithWebIdentity"
  std::vector<std::pair<std::string, std::string>> parameters;
  const Credentials* signer = nullptr;  ///< null: sent unsigned, as web identities are
  std::string source;                   ///< for people: "role arn:aws:iam::1:role/x"
};

/// Makes the call and waits; once more by AWS's time where it refuses the time of the signature.
/// ErrorKind::no_credentials with AWS's reason when it refuses.
Result<Credentials> call_sts(const SourceContext& context, const StsCall& call, Deadline deadline);

/// Reads the XML of an answer. Pure.
Result<Credentials> parse_sts_answer(std::string_view xml, const std::string& source);
/// An error's XML: its code as the name, "AccessDenied: User: ... is not authorized" as the message; both are empty
/// when it is none. Pure.
Error parse_sts_error(std::string_view xml);

/// The name that this host's sessions carry in AWS's logs.
std::string default_session_name(const Clock& clock);

}  // namespace sluice::dynamo
