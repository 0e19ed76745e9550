#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::dynamo {

/// Stands for bytes that are not UTF-8 (U+FFFD).
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// How many bytes at the start of `text` are printable ASCII other than quote and backslash, so that JSON shows them as
/// they are. Looks at eight bytes a step: most of what a codec does is this.
std::size_t plain_run(std::string_view text);

/// The length in bytes of the UTF-8 sequence at the start of `text`, 1 to 4; 0 when there is none (also for surrogates,
/// overlong forms and what lies beyond U+10FFFF).
std::size_t utf8_length(std::string_view text);

/// Appends a code point, at most U+10FFFF and no surrogate, as UTF-8.
void append_utf8(std::string& out, unsigned code_point);

/// Base64 of RFC 4648 with padding.
void append_base64(std::string& out, std::string_view bytes);
std::string base64(std::string_view bytes);
/// Strict: no white space, no missing padding, no stray bits. Nothing for text that is not base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace sluice::dynamo
