#include "base/timestamp.hpp"

#include <array>
#include <cstdio>

namespace sluice {
namespace {

using std::chrono::days;
using std::chrono::sys_days;

constexpr int kFractionDigits = 9;

/// Takes exactly `count` digits off the front; nothing when there are fewer.
std::optional<int> take_digits(std::string_view& text, std::size_t count) {
  if (text.size() < count) {
    return std::nullopt;
  }
  int value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') {
      return std::nullopt;
    }
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

std::optional<std::int64_t> take_fraction(std::string_view& text) {
  std::int64_t nanoseconds = 0;
  int digits = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    if (digits < kFractionDigits) {
      nanoseconds = nanoseconds * 10 + (text.front() - '0');
    }
    ++digits;
    text.remove_prefix(1);
  }
  if (digits == 0) {
    return std::nullopt;
  }
  for (; digits < kFractionDigits; ++digits) {
    nanoseconds *= 10;
  }
  return nanoseconds;
}

/// "Z" or "+hh:mm" or "-hh:mm", and nothing behind it.
std::optional<std::chrono::minutes> take_offset(std::string_view text) {
  if (text == "Z") {
    return std::chrono::minutes{0};
  }
  if (text.empty() || (text.front() != '+' && text.front() != '-')) {
    return std::nullopt;
  }
  const int sign = text.front() == '-' ? -1 : 1;
  text.remove_prefix(1);
  const auto hours = take_digits(text, 2);
  if (!hours || *hours > 23 || !take(text, ':')) {
    return std::nullopt;
  }
  const auto minutes = take_digits(text, 2);
  if (!minutes || *minutes > 59 || !text.empty()) {
    return std::nullopt;
  }
  return std::chrono::minutes{sign * (*hours * 60 + *minutes)};
}

std::optional<sys_days> take_date(std::string_view& text) {
  const auto year = take_digits(text, 4);
  if (!year || !take(text, '-')) {
    return std::nullopt;
  }
  const auto month = take_digits(text, 2);
  if (!month || !take(text, '-')) {
    return std::nullopt;
  }
  const auto day = take_digits(text, 2);
  if (!day) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year{*year}, std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  // The span that 64 bits of nanoseconds can hold, whole years only.
  if (!date.ok() || *year < 1678 || *year > 2261) {
    return std::nullopt;
  }
  return sys_days{date};
}

std::optional<std::chrono::seconds> take_time_of_day(std::string_view& text) {
  const auto hour = take_digits(text, 2);
  if (!hour || *hour > 23 || !take(text, ':')) {
    return std::nullopt;
  }
  const auto minute = take_digits(text, 2);
  if (!minute || *minute > 59 || !take(text, ':')) {
    return std::nullopt;
  }
  const auto second = take_digits(text, 2);
  if (!second || *second > 59) {
    return std::nullopt;
  }
  return std::chrono::hours{*hour} + std::chrono::minutes{*minute} + std::chrono::seconds{*second};
}

}  // namespace

std::string format_timestamp(WallTime time) {
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss<Duration> clock{time - day};
  std::array<char, 64> text{};
  const int size = std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%09lldZ",
                                 static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                                 static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                                 static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
                                 static_cast<long long>(clock.subseconds().count()));
  return std::string(text.data(), static_cast<std::size_t>(size));
}

std::optional<WallTime> parse_timestamp(std::string_view text) {
  const auto date = take_date(text);
  if (!date || !take(text, 'T')) {
    return std::nullopt;
  }
  const auto time_of_day = take_time_of_day(text);
  if (!time_of_day) {
    return std::nullopt;
  }
  std::int64_t nanoseconds = 0;
  if (take(text, '.')) {
    const auto fraction = take_fraction(text);
    if (!fraction) {
      return std::nullopt;
    }
    nanoseconds = *fraction;
  }
  const auto offset = take_offset(text);
  if (!offset) {
    return std::nullopt;
  }
  return WallTime(*date) + *time_of_day - *offset + Duration(nanoseconds);
}

std::optional<WallTime> parse_timestamp_or_end(std::string_view text) {
  if (const auto time = parse_timestamp(text)) {
    return time;
  }
  constexpr std::string_view kLastYear = "2261";
  if (text.substr(0, kLastYear.size()) <= kLastYear) {
    return std::nullopt;
  }
  // 2260 is a leap year, and so takes every day of any other.
  const auto in_a_year_we_know = parse_timestamp("2260" + std::string(text.substr(kLastYear.size())));
  return in_a_year_we_know ? std::optional(kEndOfTime) : std::nullopt;
}

}  // namespace sluice
