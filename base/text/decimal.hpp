#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Decimal numbers as text, with all their digits. Pure functions, thread-safe.
namespace sluice {

/// A decimal number's text taken apart: sign, digits before and after the point, exponent. Borrows the text.
struct Decimal {
  bool negative = false;
  std::string_view whole;     ///< may be empty
  std::string_view fraction;  ///< may be empty; never both
  std::string_view exponent;  ///< with its sign; empty: none
};

/// Reads a sign, digits with or without a point, and an exponent, as DynamoDB does. Nothing for other text.
std::optional<Decimal> parse_decimal(std::string_view text);

/// What a decimal number is worth: 0.DIGITS times ten to the power of `exponent`. The first digit and the last one are
/// not 0; zero has none.
struct DecimalValue {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;  ///< bounded: an exponent beyond 10^15 counts as that
};
DecimalValue value_of(const Decimal& decimal);

/// True for text that is a number in JSON's spelling, such as "-12.50e3".
bool is_json_number(std::string_view text);

/// Compares two numbers exactly: 9007199254740993 is more than 9007199254740992, and 1.0 equals 1. Any number of
/// digits; text that `parse_decimal` refuses counts as zero.
std::strong_ordering compare_decimals(std::string_view left, std::string_view right);

/// A number with so many digits behind the point: "12.50".
std::string fixed_decimal(double number, int digits);

/// The number as JSON spells it: as it is where it can be, else without plus sign and leading zeros, with a digit on
/// each side of the point. `text` that is no number comes as a JSON string, so that the result is always JSON.
void append_json_number(std::string& out, std::string_view text);

}  // namespace sluice
