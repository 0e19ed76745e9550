#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text/json_reader.hpp"

namespace sluice::fleet {

/// Writes one JSON object on one line. Members that say nothing (empty, zero, false) are left out, as notices are
/// billed by their size.
class JsonLine {
 public:
  void text(std::string_view name, std::string_view value);
  void number(std::string_view name, std::int64_t value);
  void rate(std::string_view name, double value);
  void flag(std::string_view name, bool value);
  void time(std::string_view name, const std::optional<WallTime>& value);
  /// In milliseconds.
  void span(std::string_view name, Duration value);
  /// JSON as it is.
  void raw(std::string_view name, std::string_view json);

  std::size_t size() const { return out_.size(); }
  std::string finish() && { return out_ + "}"; }

 private:
  void name(std::string_view name);
  std::string out_ = "{";
};

/// What a member's value is read into. Each passes over a value of another kind or out of range: a host of another
/// version may mean something else by the name, and one odd member is no reason to see nothing of a host.
bool read_into(JsonReader& json, std::string& out);
bool read_into(JsonReader& json, bool& out);
bool read_into(JsonReader& json, std::int64_t& out);
bool read_into(JsonReader& json, std::uint64_t& out);
bool read_into(JsonReader& json, std::uint32_t& out);
bool read_into(JsonReader& json, double& out);
bool read_into(JsonReader& json, Duration& out);
bool read_into(JsonReader& json, WallTime& out);
bool read_into(JsonReader& json, std::optional<WallTime>& out);

/// Reads an object: `member(name)` reads the value of each.
template <typename Member>
bool read_members(JsonReader& json, Member member) {
  std::string_view name;
  if (json.peek() != JsonReader::Kind::object) {
    return json.skip();
  }
  json.begin_object();
  while (json.next_member(name)) {
    // The name holds until the next call.
    member(std::string(name));
  }
  return !json.failed();
}

/// Reads an array of objects: `element()` reads one.
template <typename Element>
bool read_elements(JsonReader& json, Element element) {
  if (json.peek() != JsonReader::Kind::array) {
    return json.skip();
  }
  json.begin_array();
  while (json.next_element()) {
    element();
  }
  return !json.failed();
}

/// A whole text that is one object. ErrorCode::corrupt, calling it `what`, for anything else.
template <typename Member>
Result<void> read_object(std::string_view text, std::string_view what, Member member) {
  constexpr std::size_t kDepth = 8;
  JsonReader json(text, kDepth, JsonReader::BadText::replace);
  const bool object = json.peek() == JsonReader::Kind::object;
  if (!object || !read_members(json, [&](const std::string& name) { member(json, name); }) || !json.finish()) {
    return Error(ErrorCode::corrupt,
                 std::string(what) + " cannot be read: " +
                     (json.failed() ? json.reason() + " at " + json.place() : "it is no JSON object"));
  }
  return {};
}

}  // namespace sluice::fleet
