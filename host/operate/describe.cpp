#include "host/operate/describe.hpp"

#include <algorithm>
#include <array>

#include "base/text/decimal.hpp"
#include "base/timestamp.hpp"

namespace sluice::operate {

void Fields::text(std::string_view key, const Column& column, std::string_view value, Colour colour) {
  member(key, value);
  if (row_ != nullptr) {
    cell(column, {std::string(value), colour});
  }
}

void Fields::member(std::string_view key, std::optional<double> value, int digits) {
  if (json_ != nullptr && !key.empty()) {
    json_->key(key);
    value ? json_->word(fixed_decimal(*value, digits)) : json_->null();
  }
}

void Fields::rate(std::string_view key, const Column& column, std::optional<double> value, Colour colour) {
  constexpr double kShown = 0.05;
  member(key, value, 2);
  if (row_ != nullptr) {
    cell(column, value ? Cell(rate_text(*value), *value >= kShown ? colour : Colour::none) : Cell("-"));
  }
}

void Fields::seconds(std::string_view key, const Column& column, std::optional<Duration> value) {
  member(key, value ? std::optional(std::chrono::duration<double>(*value).count()) : std::nullopt, 3);
  if (row_ != nullptr) {
    cell(column, time_text(value.value_or(Duration::zero())));
  }
}

void Fields::time(std::string_view key, const Column& column, WallTime value) {
  member(key, value);
  if (row_ != nullptr) {
    cell(column, to_the_second(value));
  }
}

void Fields::cell(const Column& column, Cell cell) {
  if (row_ != nullptr && !column.title.empty()) {
    row_->emplace_back(column, std::move(cell));
  }
}

std::string to_the_second(WallTime time) {
  return format_timestamp(time).substr(0, std::string_view("2006-01-02T15:04:05").size()) + "Z";
}

std::string rate_text(double per_second) {
  if (per_second < 0.05) {
    return "0";
  }
  if (per_second >= 9'950) {
    return fixed_decimal(per_second / 1000, 0) + "k";
  }
  if (per_second >= 999.5) {
    return fixed_decimal(per_second / 1000, 1) + "k";
  }
  return fixed_decimal(per_second, per_second < 9.95 ? 1 : 0);
}

std::string time_text(Duration time) {
  const double seconds = std::chrono::duration<double>(time).count();
  if (seconds < 0.5e-6) {  // a mean that has died away, too
    return "-";
  }
  if (seconds < 0.001) {
    return fixed_decimal(seconds * 1e6, 0) + "us";
  }
  if (seconds < 0.9995) {
    return fixed_decimal(seconds * 1e3, seconds < 0.00995 ? 1 : 0) + "ms";
  }
  return seconds < 99.95 ? fixed_decimal(seconds, seconds < 9.995 ? 2 : 1) + "s" : short_duration(time);
}

std::string short_duration(Duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::max(duration, Duration::zero())).count();
  constexpr std::array<std::pair<std::int64_t, char>, 3> kUnits{{{86400, 'd'}, {3600, 'h'}, {60, 'm'}}};
  for (const auto& [size, unit] : kUnits) {
    if (seconds >= 2 * size) {
      return std::to_string(seconds / size) + unit;
    }
  }
  return std::to_string(seconds) + "s";
}

}  // namespace sluice::operate
