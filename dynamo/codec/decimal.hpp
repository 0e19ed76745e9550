#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::dynamo {

/// A decimal number's text taken apart: sign, digits before and after the point, exponent. Borrows the text.
struct Decimal {
  bool negative = false;
  std::string_view whole;     ///< may be empty
  std::string_view fraction;  ///< may be empty; never both
  std::string_view exponent;  ///< with its sign; empty: none
};

/// Reads what DynamoDB takes for a number: a sign, digits with or without a point, an exponent. Nothing for other text.
std::optional<Decimal> parse_decimal(std::string_view text);

/// Longest text of a number that comes from a server: plain digits down to 1E-130 and 38 more, with room to spare.
inline constexpr std::size_t kMaxNumberText = 512;

/// The number as JSON spells it: as it is where it can be, else without plus sign and leading zeros, with a digit on
/// each side of the point. `text` that is no number comes as a JSON string, so that the result is always JSON.
void append_json_number(std::string& out, std::string_view text);

}  // namespace sluice::dynamo
