#pragma once

#include <compare>
#include <string_view>

namespace sluice::operate {

/// True for text that is a number in JSON's spelling, such as "-12.50e3".
bool is_decimal(std::string_view text);

/// Compares two numbers in JSON's spelling exactly: 9007199254740993 is more than 9007199254740992, and 1.0 equals 1.
/// Any number of digits; both must be `is_decimal`.
std::strong_ordering compare_decimals(std::string_view left, std::string_view right);

}  // namespace sluice::operate
