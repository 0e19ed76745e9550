#pragma once

#include <map>
#include <string>
#include <string_view>

#include "dynamo/error.hpp"

namespace sluice::dynamo {

/// One section's properties: names in lower case to values. A nested property ("dynamodb =" followed by an indented
/// "endpoint_url = ...") is found under "dynamodb.endpoint_url".
using IniSection = std::map<std::string, std::string, std::less<>>;
/// Sections by their headings, blanks squeezed and quotes removed: "default", "profile dev", "sso-session corp".
using IniFile = std::map<std::string, IniSection, std::less<>>;

/// Reads AWS's dialect of INI. Comments are lines that begin with '#' or ';', and what follows such a sign after a
/// blank; an indented line continues the value above it, or is a property of its own below an empty value; a section or
/// property that comes twice is merged, the later one wins. ErrorKind::no_credentials with "name:line: ..." for a line
/// that is none of these. `name` is the file's, for messages; values never appear in them. Pure.
Result<IniFile> parse_ini(std::string_view text, const std::string& name);

}  // namespace sluice::dynamo
