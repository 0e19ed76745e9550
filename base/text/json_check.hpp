#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// Tells JSON from other text. Pure functions, thread-safe.
namespace sluice {

/// Objects and arrays within one another; deeper JSON is an error.
inline constexpr std::size_t kJsonDepth = 128;

/// Nothing when the text is exactly one JSON value, UTF-8, nested at most kJsonDepth deep; otherwise what is wrong and
/// where, such as "a value is expected at character 7". Allocates nothing for text that is JSON.
std::optional<std::string> json_problem(std::string_view text);

/// The characters of a JSON document that is a string; nothing when it is no string, or no JSON.
std::optional<std::string> json_string(std::string_view text);

/// `text` without the spaces around it.
std::string_view json_trimmed(std::string_view text);

}  // namespace sluice
