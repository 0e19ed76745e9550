#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

/// Hexadecimal text with lower-case letters. Pure functions, thread-safe.

inline constexpr std::string_view kHexDigits = "0123456789abcdef";

/// Two digits a byte.
std::string to_hex(std::span<const unsigned char> bytes);
std::string to_hex(std::string_view bytes);

/// The bytes that `text` was made of; nothing where it is none that to_hex gives.
std::optional<std::string> from_hex(std::string_view text);

/// The lowest `digits` digits of a number, at most 16, with zeros in front.
std::string hex_digits(std::uint64_t number, std::size_t digits);

}  // namespace sluice
