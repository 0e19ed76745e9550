#pragma once

#include <string>
#include <string_view>

namespace publishing {

/// True for the bytes that no header, name or subject may hold: below a space, and DEL.
constexpr bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }
bool has_control(std::string_view text);

/// A text of anybody's making as one line: control characters become spaces, and what is longer than `limit` is cut.
std::string one_line(std::string_view text, std::size_t limit = 200);

/// True when the pattern, in which each `*` stands for any text, fits the whole of `text`.
bool matches(std::string_view pattern, std::string_view text);

/// True when the whole text is UTF-8.
bool is_utf8(std::string_view text);

/// SHA-256 in lower-case hexadecimal. Throws std::runtime_error when the cryptography library has none.
std::string sha256_hex(std::string_view bytes);

}  // namespace publishing
