#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

/// UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF. Pure functions, thread-safe.

/// Stands for bytes that are not UTF-8 (U+FFFD).
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// True for a byte that goes on with a character and begins none.
constexpr bool continues_utf8(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

/// The length in bytes of the character at the start of `text`, 1 to 4; 0 when there is none.
std::size_t utf8_length(std::string_view text);

/// How many bytes at the start of `text` are UTF-8.
std::size_t utf8_run(std::string_view text);
/// True when the whole text is UTF-8.
inline bool is_utf8(std::string_view text) { return utf8_run(text) == text.size(); }

/// How many characters begin in `text`, which need not be UTF-8.
std::size_t count_utf8(std::string_view text);

/// Appends a code point, at most U+10FFFF and no surrogate.
void append_utf8(std::string& out, unsigned code_point);

/// The longest beginning of `text` within `limit` bytes that cuts no character in two.
std::string_view cut_utf8(std::string_view text, std::size_t limit);

/// The text as UTF-8 of at most `limit` bytes: each byte that is not UTF-8 becomes `replacement`, then it is cut.
std::string clean_utf8(std::string_view text, std::size_t limit, std::string_view replacement = kReplacementCharacter);

}  // namespace sluice
