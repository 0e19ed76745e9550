#pragma once

#include <string>
#include <string_view>

/// HMAC-SHA256 in lower-case hexadecimal.
std::string hmac_sha256(std::string_view secret, std::string_view text);
