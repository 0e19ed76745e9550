#include "tests/support/dynamodb_model/numbers.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "tests/support/dynamodb_model/failure.hpp"

namespace sluice::test::model {
namespace {

constexpr std::size_t kMaxDigits = 38;
constexpr long kLargestMagnitude = 126;
constexpr long kSmallestMagnitude = -129;
constexpr long kEndlessExponent = 100'000;
constexpr int kMagnitudeBias = 1000;

// 0.DIGITS times ten to the power of `magnitude`; digits without zeros at either end, none: zero.
struct Parts {
  bool negative = false;
  std::string digits;
  long magnitude = 0;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// An integer as DynamoDB would show it, which nearly all numbers are.
bool is_plain(std::string_view text) {
  if (!text.empty() && text.front() == '-') {
    text.remove_prefix(1);
    if (text == "0") {
      return false;
    }
  }
  return !text.empty() && text.size() <= kMaxDigits && (text.front() != '0' || text.size() == 1) &&
         std::all_of(text.begin(), text.end(), is_digit);
}

std::optional<long> parse_exponent(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    text.remove_prefix(1);
  }
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) {
    return std::nullopt;
  }
  long value = 0;
  for (const char c : text) {
    value = std::min(value * 10 + (c - '0'), kEndlessExponent);
  }
  return negative ? -value : value;
}

void normalise(Parts& parts) {
  const std::size_t first = parts.digits.find_first_not_of('0');
  if (first == std::string::npos) {
    parts = {};
    return;
  }
  parts.digits.erase(0, first);
  parts.magnitude -= static_cast<long>(first);
  parts.digits.erase(parts.digits.find_last_not_of('0') + 1);
}

std::optional<Parts> parse(std::string_view text) {
  Parts parts;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    parts.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  long exponent = 0;
  if (const auto e = text.find_first_of("eE"); e != std::string_view::npos) {
    const auto value = parse_exponent(text.substr(e + 1));
    if (!value) {
      return std::nullopt;
    }
    exponent = *value;
    text = text.substr(0, e);
  }
  const auto point = text.find('.');
  const auto whole = text.substr(0, point);
  const auto fraction = point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  parts.digits = whole;
  parts.digits += fraction;
  if (parts.digits.empty() || !std::all_of(parts.digits.begin(), parts.digits.end(), is_digit)) {
    return std::nullopt;
  }
  parts.magnitude = static_cast<long>(whole.size()) + exponent;
  normalise(parts);
  return parts;
}

void check_range(const Parts& parts) {
  if (parts.digits.size() > kMaxDigits) {
    throw validation("Attempting to store more than 38 significant digits in a Number");
  }
  if (!parts.digits.empty() && parts.magnitude > kLargestMagnitude) {
    throw validation("Number overflow. Attempting to store a number with magnitude larger than supported range");
  }
  if (!parts.digits.empty() && parts.magnitude < kSmallestMagnitude) {
    throw validation("Number underflow. Attempting to store a number with magnitude smaller than supported range");
  }
}

std::string text_of(const Parts& parts) {
  if (parts.digits.empty()) {
    return "0";
  }
  std::string out = parts.negative ? "-" : "";
  const auto count = static_cast<long>(parts.digits.size());
  if (parts.magnitude <= 0) {
    out += "0." + std::string(static_cast<std::size_t>(-parts.magnitude), '0') + parts.digits;
  } else if (parts.magnitude >= count) {
    out += parts.digits + std::string(static_cast<std::size_t>(parts.magnitude - count), '0');
  } else {
    const auto whole = static_cast<std::size_t>(parts.magnitude);
    out += parts.digits.substr(0, whole) + "." + parts.digits.substr(whole);
  }
  return out;
}

Parts canonical_parts(std::string_view number) { return parse(number).value_or(Parts{}); }

int compare_absolute(const Parts& a, const Parts& b) {
  if (a.digits.empty() || b.digits.empty()) {
    return static_cast<int>(!a.digits.empty()) - static_cast<int>(!b.digits.empty());
  }
  if (a.magnitude != b.magnitude) {
    return a.magnitude < b.magnitude ? -1 : 1;
  }
  return a.digits.compare(b.digits);
}

// The digits of both as integers of one scale.
void align(const Parts& a, const Parts& b, std::string& x, std::string& y, long& scale) {
  const auto end = [](const Parts& p) { return p.magnitude - static_cast<long>(p.digits.size()); };
  scale = std::min(end(a), end(b));
  x = a.digits + std::string(static_cast<std::size_t>(end(a) - scale), '0');
  y = b.digits + std::string(static_cast<std::size_t>(end(b) - scale), '0');
  const std::size_t size = std::max(x.size(), y.size()) + 1;
  x.insert(0, size - x.size(), '0');
  y.insert(0, size - y.size(), '0');
}

// `x` plus `sign` times `y`, digit by digit; |x| >= |y| when sign is -1.
std::string combine(const std::string& x, const std::string& y, int sign) {
  std::string out(x.size(), '0');
  int carry = 0;
  for (std::size_t i = x.size(); i-- > 0;) {
    const int sum = (x[i] - '0') + sign * (y[i] - '0') + carry;
    carry = sum < 0 ? -1 : sum / 10;
    out[i] = static_cast<char>('0' + (sum + 10) % 10);
  }
  return out;
}

std::string sum(Parts a, Parts b) {
  if (a.digits.empty() || b.digits.empty()) {
    return text_of(a.digits.empty() ? b : a);
  }
  if (compare_absolute(a, b) < 0) {
    std::swap(a, b);
  }
  std::string x;
  std::string y;
  long scale = 0;
  align(a, b, x, y, scale);
  Parts out;
  out.negative = a.negative;
  out.digits = combine(x, y, a.negative == b.negative ? 1 : -1);
  out.magnitude = static_cast<long>(out.digits.size()) + scale;
  normalise(out);
  check_range(out);
  return text_of(out);
}

}  // namespace

std::string canonical_number(std::string_view text) {
  if (is_plain(text)) {
    return std::string(text);
  }
  const auto parts = parse(text);
  if (!parts) {
    throw validation(text.empty() ? "The parameter cannot be converted to a numeric value"
                                  : "The parameter cannot be converted to a numeric value: " + std::string(text));
  }
  check_range(*parts);
  return text_of(*parts);
}

int compare_numbers(std::string_view a, std::string_view b) {
  const Parts x = canonical_parts(a);
  const Parts y = canonical_parts(b);
  const int sign_x = x.digits.empty() ? 0 : (x.negative ? -1 : 1);
  const int sign_y = y.digits.empty() ? 0 : (y.negative ? -1 : 1);
  if (sign_x != sign_y) {
    return sign_x < sign_y ? -1 : 1;
  }
  return sign_x * compare_absolute(x, y);
}

std::string add_numbers(std::string_view a, std::string_view b) { return sum(canonical_parts(a), canonical_parts(b)); }

std::string subtract_numbers(std::string_view a, std::string_view b) {
  Parts other = canonical_parts(b);
  other.negative = !other.negative;
  return sum(canonical_parts(a), std::move(other));
}

std::string number_sort_bytes(std::string_view number) {
  const Parts parts = canonical_parts(number);
  if (parts.digits.empty()) {
    return "\x01";
  }
  const auto magnitude = static_cast<int>(parts.magnitude) + kMagnitudeBias;
  std::string out = {static_cast<char>(magnitude >> 8), static_cast<char>(magnitude & 0xFF)};
  out += parts.digits;
  out.push_back('\0');
  if (parts.negative) {
    std::transform(out.begin(), out.end(), out.begin(), [](char c) { return static_cast<char>(~c); });
  }
  return (parts.negative ? '\0' : '\2') + out;
}

std::size_t number_bytes(std::string_view number) {
  const Parts parts = canonical_parts(number);
  return (parts.digits.size() + 1) / 2 + 1 + (parts.negative && !parts.digits.empty() ? 1 : 0);
}

}  // namespace sluice::test::model
