#pragma once

#include <string>
#include <string_view>

#include "dynamo/credentials/credentials.hpp"

namespace sluice::dynamo {

/// Reads the JSON in which the container agent, the instance metadata, a credential_process and IAM Identity Center
/// hand out keys; they differ in letter case, in "Token" for "SessionToken", and in the form of the expiry. `member`:
/// the object's name inside the answer, empty for the answer itself. ErrorKind::no_credentials, with no word of the
/// content, for anything else. `source` names where it came from. Pure.
Result<Credentials> credentials_from_json(std::string_view text, std::string_view member, const std::string& source);

/// A text or number member of a JSON object, as text; empty when it is not there or `text` is no object. Pure.
std::string json_member(std::string_view text, std::string_view name);

}  // namespace sluice::dynamo
