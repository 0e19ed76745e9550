#pragma once

#include <string>
#include <string_view>

#include "dynamo/error.hpp"

namespace sluice::dynamo {

/// The parts of an http or https URL that signing needs. Borrows the URL.
struct UrlParts {
  std::string_view scheme;
  std::string_view host;   ///< as a Host header has it: with the port, unless it is the scheme's own
  std::string_view path;   ///< "/" when empty
  std::string_view query;  ///< without '?'
};

/// ErrorKind::validation, one line, for a URL that is not absolute http(s), has a user name or a fragment, or holds
/// white space or control characters.
Result<UrlParts> parse_url(std::string_view url);

/// RFC 3986's removal of "." and "..", and one slash in place of several. Always begins with a slash.
std::string normalized_path(std::string_view path);

/// The parameters decoded, encoded anew and sorted by name, then value.
std::string canonical_query(std::string_view query);

}  // namespace sluice::dynamo
