#include "host/fleet/json_line.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/text/json_string.hpp"
#include "base/timestamp.hpp"

namespace sluice::fleet {
namespace {

// The longest that anybody waits between two records or for a handler; more is garbage.
constexpr std::int64_t kMostMilliseconds = std::int64_t{1'000'000'000} * 1'000;

template <typename Number>
bool read_whole(JsonReader& json, Number& out, Number most = std::numeric_limits<Number>::max()) {
  if (json.peek() != JsonReader::Kind::number) {
    return json.skip();
  }
  std::string_view text;
  if (!json.read_number(text)) {
    return false;
  }
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value <= most) {
    out = value;
  }
  return true;
}

}  // namespace

void JsonLine::name(std::string_view name) {
  out_ += out_.size() > 1 ? ",\"" : "\"";
  out_ += name;
  out_ += "\":";
}

void JsonLine::text(std::string_view name, std::string_view value) {
  if (!value.empty()) {
    this->name(name);
    append_json_string(out_, value);
  }
}

void JsonLine::number(std::string_view name, std::int64_t value) {
  if (value != 0) {
    this->name(name);
    out_ += std::to_string(value);
  }
}

void JsonLine::rate(std::string_view name, double value) {
  if (value > 0 && std::isfinite(value)) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), value < 100 ? "%.2f" : "%.0f", value);
    this->name(name);
    out_ += text.data();
  }
}

void JsonLine::flag(std::string_view name, bool value) {
  if (value) {
    this->name(name);
    out_ += "true";
  }
}

void JsonLine::time(std::string_view name, const std::optional<WallTime>& value) {
  if (value) {
    text(name, format_timestamp(*value));
  }
}

void JsonLine::span(std::string_view name, Duration value) {
  rate(name, std::chrono::duration<double, std::milli>(value).count());
}

void JsonLine::raw(std::string_view name, std::string_view json) {
  this->name(name);
  out_ += json;
}

bool read_into(JsonReader& json, std::string& out) {
  return json.peek() == JsonReader::Kind::string ? json.read_string(out) : json.skip();
}

bool read_into(JsonReader& json, bool& out) {
  return json.peek() == JsonReader::Kind::boolean ? json.read_bool(out) : json.skip();
}

bool read_into(JsonReader& json, std::int64_t& out) { return read_whole(json, out); }
bool read_into(JsonReader& json, std::uint64_t& out) { return read_whole(json, out); }
bool read_into(JsonReader& json, std::uint32_t& out) { return read_whole(json, out); }

bool read_into(JsonReader& json, double& out) {
  if (json.peek() != JsonReader::Kind::number) {
    return json.skip();
  }
  std::string_view text;
  if (!json.read_number(text)) {
    return false;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value)) {
    out = value;
  }
  return true;
}

bool read_into(JsonReader& json, Duration& out) {
  double milliseconds = 0;
  const bool read = read_into(json, milliseconds);
  if (milliseconds > 0 && milliseconds <= static_cast<double>(kMostMilliseconds)) {
    out = std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(milliseconds));
  }
  return read;
}

bool read_into(JsonReader& json, std::optional<WallTime>& out) {
  std::string text;
  const bool read = read_into(json, text);
  if (const auto time = parse_timestamp(text)) {
    out = time;
  }
  return read;
}

bool read_into(JsonReader& json, WallTime& out) {
  std::optional<WallTime> time;
  const bool read = read_into(json, time);
  out = time.value_or(out);
  return read;
}

}  // namespace sluice::fleet
