#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace sluice {

/// The whole text as a number of that type, in decimal digits; nothing for other text and for what the type cannot
/// hold.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, number);
  return failed == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

}  // namespace sluice
