#include "host/operate/decimal.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace sluice::operate {

namespace {

// Beyond it only the sign of an exponent counts; far more than any text has digits.
constexpr std::int64_t kMaxExponent = 1'000'000'000'000'000;

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

std::size_t count_digits(std::string_view text) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
}

/// A number as 0.DIGITS times ten to the power of `exponent`; no digits for zero. The first digit is not 0.
struct Decimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;
};

std::int64_t read_exponent(std::string_view text) {
  const bool negative = text.starts_with('-');
  std::int64_t value = 0;
  for (const char byte : text) {
    if (is_digit(byte)) {
      value = std::min(kMaxExponent, value * 10 + (byte - '0'));
    }
  }
  return negative ? -value : value;
}

Decimal read_decimal(std::string_view text) {
  Decimal number;
  number.negative = text.starts_with('-');
  text.remove_prefix(number.negative ? 1 : 0);
  const std::size_t mantissa = std::min(text.find_first_of("eE"), text.size());
  const std::int64_t power = mantissa < text.size() ? read_exponent(text.substr(mantissa + 1)) : 0;
  const std::string_view written = text.substr(0, mantissa);
  const std::size_t whole = std::min(written.find('.'), written.size());
  number.digits = written.substr(0, whole);
  number.exponent = static_cast<std::int64_t>(whole) + power;
  if (whole < written.size()) {
    number.digits += written.substr(whole + 1);
  }
  const std::size_t zeros = std::min(number.digits.find_first_not_of('0'), number.digits.size());
  number.digits.erase(0, zeros);
  number.exponent -= static_cast<std::int64_t>(zeros);
  number.digits.erase(number.digits.find_last_not_of('0') + 1);
  return number;
}

int sign(const Decimal& number) { return number.digits.empty() ? 0 : number.negative ? -1 : 1; }

}  // namespace

bool is_decimal(std::string_view text) {
  text.remove_prefix(text.starts_with('-') ? 1 : 0);
  const std::size_t whole = count_digits(text);
  if (whole == 0 || (whole > 1 && text.front() == '0')) {
    return false;
  }
  text.remove_prefix(whole);
  if (text.starts_with('.')) {
    const std::size_t fraction = count_digits(text.substr(1));
    if (fraction == 0) {
      return false;
    }
    text.remove_prefix(fraction + 1);
  }
  if (text.empty()) {
    return true;
  }
  if (text.front() != 'e' && text.front() != 'E') {
    return false;
  }
  text.remove_prefix(1);
  text.remove_prefix(text.starts_with('+') || text.starts_with('-') ? 1 : 0);
  return !text.empty() && count_digits(text) == text.size();
}

std::strong_ordering compare_decimals(std::string_view left, std::string_view right) {
  const Decimal a = read_decimal(left);
  const Decimal b = read_decimal(right);
  if (sign(a) != sign(b) || sign(a) == 0) {
    return sign(a) <=> sign(b);
  }
  // Both have a first digit other than 0, so that the exponents decide unless they are equal; and then the digits do,
  // as text.
  const auto magnitude = a.exponent != b.exponent ? a.exponent <=> b.exponent : a.digits.compare(b.digits) <=> 0;
  return sign(a) > 0 ? magnitude : 0 <=> magnitude;
}

}  // namespace sluice::operate
