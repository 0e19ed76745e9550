#pragma once

#include <string>
#include <string_view>

namespace sluice::test::model {

/// DynamoDB's numbers: decimals of 38 significant digits between 1E-130 and 9.99E+125, always without an exponent and
/// without needless zeros once they are stored. Functions throw a Failure with DynamoDB's words for what it refuses.

/// The text as DynamoDB stores it.
std::string canonical_number(std::string_view text);

// Of canonical numbers.
int compare_numbers(std::string_view a, std::string_view b);
std::string add_numbers(std::string_view a, std::string_view b);
std::string subtract_numbers(std::string_view a, std::string_view b);
/// Bytes that sort as the numbers do.
std::string number_sort_bytes(std::string_view number);
/// What DynamoDB bills for it: a byte for two digits, one for its size, one for a minus.
std::size_t number_bytes(std::string_view number);

}  // namespace sluice::test::model
