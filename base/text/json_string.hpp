#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

/// How many bytes at the start of `text` are printable ASCII other than quote and backslash, so that JSON shows them as
/// they are. Looks at eight bytes a step: most of what a codec does is this.
std::size_t plain_run(std::string_view text);

/// The escape of one character below U+0100 as JSON writes it: a short one where there is such, else \u00XX.
void append_json_escape(std::string& out, unsigned char c);

/// Appends `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD, as JSON has no way to
/// carry them.
void append_json_string(std::string& out, std::string_view text);
/// The same by itself.
std::string json_quoted(std::string_view text);

}  // namespace sluice
