#include "base/timestamp.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace sluice {
namespace {

using std::chrono::days;

constexpr std::size_t kFractionDigits = 9;

/// Takes text of the form of `pattern` off the front, in which 'd' is a digit and all else itself; the numbers that its
/// runs of digits are. Nothing when the text has another form.
template <std::size_t kCount>
std::optional<std::array<int, kCount>> take(std::string_view& text, std::string_view pattern) {
  std::array<int, kCount> numbers{};
  std::size_t number = 0;
  if (text.size() < pattern.size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != 'd') {
      ++number;
      if (text[i] != pattern[i]) {
        return std::nullopt;
      }
    } else if (text[i] < '0' || text[i] > '9') {
      return std::nullopt;
    } else {
      numbers[number] = numbers[number] * 10 + (text[i] - '0');
    }
  }
  text.remove_prefix(pattern.size());
  return numbers;
}

/// ".25" as nanoseconds, and nothing as none; nothing for a point without digits.
std::optional<Duration> take_fraction(std::string_view& text) {
  if (!text.starts_with('.')) {
    return Duration::zero();
  }
  std::int64_t nanoseconds = 0;
  std::size_t size = 1;
  for (; size < text.size() && text[size] >= '0' && text[size] <= '9'; ++size) {
    nanoseconds = size <= kFractionDigits ? nanoseconds * 10 + (text[size] - '0') : nanoseconds;
  }
  for (std::size_t digits = size; digits <= kFractionDigits; ++digits) {
    nanoseconds *= 10;
  }
  text.remove_prefix(size);
  return size > 1 ? std::optional(Duration(nanoseconds)) : std::nullopt;
}

/// "Z" or "+hh:mm" or "-hh:mm", and nothing behind it.
std::optional<std::chrono::minutes> take_offset(std::string_view text) {
  if (text == "Z") {
    return std::chrono::minutes{0};
  }
  const bool west = text.starts_with('-');
  if (!west && !text.starts_with('+')) {
    return std::nullopt;
  }
  text.remove_prefix(1);
  const auto parts = take<2>(text, "dd:dd");
  if (!parts || (*parts)[0] > 23 || (*parts)[1] > 59 || !text.empty()) {
    return std::nullopt;
  }
  return std::chrono::minutes{(west ? -1 : 1) * ((*parts)[0] * 60 + (*parts)[1])};
}

}  // namespace

std::string format_timestamp(WallTime time) {
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss<Duration> clock{time - day};
  std::array<char, 64> text{};
  const int size =
      std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%09lldZ", static_cast<int>(date.year()),
                    static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                    static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                    static_cast<int>(clock.seconds().count()), static_cast<long long>(clock.subseconds().count()));
  return std::string(text.data(), static_cast<std::size_t>(size));
}

std::optional<WallTime> parse_timestamp(std::string_view text) {
  const auto parts = take<6>(text, "dddd-dd-ddTdd:dd:dd");
  if (!parts) {
    return std::nullopt;
  }
  const auto& [year, month, day, hour, minute, second] = *parts;
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  // The span that 64 bits of nanoseconds can hold, whole years only.
  const bool good = date.ok() && year >= 1678 && year <= 2261 && hour <= 23 && minute <= 59 && second <= 59;
  const auto fraction = take_fraction(text);
  const auto offset = take_offset(text);
  if (!good || !fraction || !offset) {
    return std::nullopt;
  }
  return std::max(WallTime{}, WallTime(std::chrono::sys_days{date}) + std::chrono::hours{hour} +
                                  std::chrono::minutes{minute} + std::chrono::seconds{second} - *offset + *fraction);
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
