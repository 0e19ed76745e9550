#include "dynamo/codec/decimal.hpp"

#include <algorithm>

#include "dynamo/codec/json_codec.hpp"
#include "dynamo/codec/plain_json.hpp"

namespace sluice::dynamo {

namespace {

// DynamoDB's own bounds.
constexpr std::size_t kMaxSignificantDigits = 38;
constexpr long long kLargestMagnitude = 125;
constexpr long long kSmallestMagnitude = -130;
// Far outside the bounds, and far from overflow when digits are added.
constexpr long long kEndlessExponent = 1'000'000'000'000;

std::string_view take_digits(std::string_view& rest) {
  const std::size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const std::string_view digits = rest.substr(0, end);
  rest.remove_prefix(end);
  return digits;
}

bool take(std::string_view& rest, std::string_view set) {
  if (rest.empty() || set.find(rest.front()) == std::string_view::npos) {
    return false;
  }
  rest.remove_prefix(1);
  return true;
}

long long exponent_value(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  take(text, "+-");
  long long value = 0;
  for (const char c : text) {
    value = std::min(value * 10 + (c - '0'), kEndlessExponent);
  }
  return negative ? -value : value;
}

std::string_view without_leading_zeros(std::string_view digits) {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

}  // namespace

std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal decimal;
  decimal.negative = !text.empty() && text.front() == '-';
  take(text, "+-");
  decimal.whole = take_digits(text);
  if (take(text, ".")) {
    decimal.fraction = take_digits(text);
  }
  if (decimal.whole.empty() && decimal.fraction.empty()) {
    return std::nullopt;
  }
  if (take(text, "eE")) {
    std::string_view rest = text;
    take(rest, "+-");
    const std::string_view digits = take_digits(rest);
    if (digits.empty()) {
      return std::nullopt;
    }
    decimal.exponent = text.substr(0, text.size() - rest.size());
    text = rest;
  }
  return text.empty() ? std::optional(decimal) : std::nullopt;
}

std::string number_objection(std::string_view text) {
  const std::optional<Decimal> decimal = parse_decimal(text);
  if (!decimal) {
    return "it is not a number";
  }
  std::string digits(decimal->whole);
  digits += decimal->fraction;
  const std::size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) {
    return "";
  }
  const std::size_t significant = digits.find_last_not_of('0') - first + 1;
  if (significant > kMaxSignificantDigits) {
    return "it has " + std::to_string(significant) + " significant digits and DynamoDB keeps 38";
  }
  const long long magnitude = static_cast<long long>(decimal->whole.size()) - static_cast<long long>(first) - 1 +
                              exponent_value(decimal->exponent);
  if (magnitude > kLargestMagnitude) {
    return "it is larger than DynamoDB's largest number, 9.99E+125";
  }
  if (magnitude < kSmallestMagnitude) {
    return "it is closer to zero than DynamoDB's smallest number, 1E-130";
  }
  return "";
}

void append_json_number(std::string& out, std::string_view text) {
  const std::optional<Decimal> decimal = parse_decimal(text);
  if (!decimal) {
    append_json_string(out, text);
    return;
  }
  const std::string_view whole = without_leading_zeros(decimal->whole);
  if (decimal->negative) {
    out.push_back('-');
  }
  out += whole.empty() ? "0" : whole;
  if (!decimal->fraction.empty()) {
    out.push_back('.');
    out += decimal->fraction;
  }
  if (!decimal->exponent.empty()) {
    // 'E' or 'e', as it was written: the character before the exponent.
    out.push_back(text[text.size() - decimal->exponent.size() - 1]);
    out += decimal->exponent;
  }
}

}  // namespace sluice::dynamo
