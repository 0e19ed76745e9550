#pragma once

#include <string>
#include <string_view>

namespace publishing {

/// SHA-256 in lower-case hexadecimal. Throws std::runtime_error when the cryptography library has none.
std::string sha256_hex(std::string_view bytes);

}  // namespace publishing
