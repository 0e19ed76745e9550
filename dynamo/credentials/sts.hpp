#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dynamo/credentials/sources.hpp"

namespace sluice::dynamo {

/// A call of the Security Token Service that ends in credentials.
struct StsCall {
  std::string action;  ///< "AssumeRole", "AssumeRoleWithWebIdentity"
  std::vector<std::pair<std::string, std::string>> parameters;
  const Credentials* signer = nullptr;  ///< null: sent unsigned, as web identities are
  std::string source;                   ///< for people: "role arn:aws:iam::1:role/x"
};

/// Makes the call and waits. ErrorKind::no_credentials with AWS's reason when it refuses.
Result<Credentials> call_sts(const SourceContext& context, const StsCall& call, Deadline deadline);

/// Reads the XML of an answer. Pure.
Result<Credentials> parse_sts_answer(std::string_view xml, const std::string& source);
/// "AccessDenied: User: ... is not authorized" of an error's XML; empty when it is none. Pure.
std::string parse_sts_error(std::string_view xml);

/// The name that this host's sessions carry in AWS's logs.
std::string default_session_name(const Clock& clock);

}  // namespace sluice::dynamo
