#include "base/text/decimal.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

#include "base/text/json_reader.hpp"
#include "base/text/json_string.hpp"

namespace sluice {

namespace {

// Beyond it only the sign of an exponent counts; far more than any text has digits.
constexpr std::int64_t kMaxExponent = 1'000'000'000'000'000;

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

std::int64_t exponent_value(std::string_view text) {
  const bool negative = text.starts_with('-');
  take(text, "+-");
  std::int64_t value = 0;
  for (const char c : text) {
    value = std::min(value * 10 + (c - '0'), kMaxExponent);
  }
  return negative ? -value : value;
}

int sign(const DecimalValue& value) { return value.digits.empty() ? 0 : value.negative ? -1 : 1; }

}  // namespace

std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal decimal;
  decimal.negative = text.starts_with('-');
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

DecimalValue value_of(const Decimal& decimal) {
  DecimalValue value;
  value.negative = decimal.negative;
  value.digits = decimal.whole;
  value.digits += decimal.fraction;
  const std::size_t zeros = std::min(value.digits.find_first_not_of('0'), value.digits.size());
  value.digits.erase(0, zeros);
  value.digits.erase(value.digits.find_last_not_of('0') + 1);
  value.exponent = static_cast<std::int64_t>(decimal.whole.size()) - static_cast<std::int64_t>(zeros) +
                   exponent_value(decimal.exponent);
  return value;
}

bool is_json_number(std::string_view text) {
  JsonReader reader(text, 0, JsonReader::BadText::refuse);
  std::string_view number;
  return reader.read_number(number) && number.size() == text.size();
}

std::strong_ordering compare_decimals(std::string_view left, std::string_view right) {
  const DecimalValue a = value_of(parse_decimal(left).value_or(Decimal()));
  const DecimalValue b = value_of(parse_decimal(right).value_or(Decimal()));
  if (sign(a) != sign(b) || sign(a) == 0) {
    return sign(a) <=> sign(b);
  }
  // Both have a first digit other than 0, so that the exponents decide unless they are equal; and then the digits do,
  // as text.
  const auto magnitude = a.exponent != b.exponent ? a.exponent <=> b.exponent : a.digits.compare(b.digits) <=> 0;
  return sign(a) > 0 ? magnitude : 0 <=> magnitude;
}

std::string fixed_decimal(double number, int digits) {
  std::array<char, 40> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed, digits);
  return {text.data(), end.ptr};
}

void append_json_number(std::string& out, std::string_view text) {
  const std::optional<Decimal> decimal = parse_decimal(text);
  if (!decimal) {
    append_json_string(out, text);
    return;
  }
  const std::string_view digits = decimal->whole;
  const std::string_view whole = digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
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

}  // namespace sluice
