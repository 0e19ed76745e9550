#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

/// Base64 of RFC 4648 with padding. Pure functions, thread-safe.

void append_base64(std::string& out, std::string_view bytes);
std::string base64(std::string_view bytes);
/// Strict: no white space, no missing padding, no stray bits. Nothing for text that is not base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace sluice
