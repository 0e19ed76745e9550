#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

/// Percent encoding, as RFC 3986 has it. Pure functions, thread-safe.

/// Everything but the unreserved characters and those of `kept` as %XX.
std::string percent_encoded(std::string_view text, std::string_view kept = {});

/// %XX as the bytes that they stand for; nothing where a '%' stands before anything else. '+' is a plus.
std::optional<std::string> percent_decoded(std::string_view text);

/// The same, but a '%' before anything else stays as it is.
std::string percent_decoded_loosely(std::string_view text);

}  // namespace sluice
