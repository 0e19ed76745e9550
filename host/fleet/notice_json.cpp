#include "host/fleet/notice_json.hpp"

#include <cmath>

#include "base/timestamp.hpp"

namespace sluice::fleet {
namespace {

// The longest that anybody waits between two records or for a handler; more is garbage.
constexpr std::int64_t kMostMilliseconds = std::int64_t{1'000'000'000} * 1'000;

}  // namespace

void NoticeWriter::put(std::string_view name, std::string_view value) {
  if (!value.empty()) {
    json_.member(name, value);
  }
}

void NoticeWriter::put(std::string_view name, bool value) {
  if (value) {
    json_.member(name, true);
  }
}

void NoticeWriter::put(std::string_view name, double value) {
  if (value > 0 && std::isfinite(value)) {
    json_.member(name, value, value < 0.1 ? 6 : value < 100 ? 2 : 0);
  }
}

void NoticeWriter::put(std::string_view name, Duration value) {
  put(name, std::chrono::duration<double, std::milli>(value).count());
}

void NoticeWriter::put(std::string_view name, const std::optional<WallTime>& value) {
  if (value) {
    json_.member(name, *value);
  }
}

void NoticeWriter::raw(std::string_view name, std::string_view json) {
  json_.key(name);
  json_.word(json);
}

std::string NoticeWriter::finish() && {
  json_.end_object();
  return json_.take_text();
}

bool read_into(JsonReader& json, std::string& out) {
  return json.peek() == JsonReader::Kind::string ? json.read_string(out) : json.skip();
}

bool read_into(JsonReader& json, bool& out) {
  return json.peek() == JsonReader::Kind::boolean ? json.read_bool(out) : json.skip();
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
