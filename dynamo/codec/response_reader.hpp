#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include "base/text/json_reader.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "dynamo/codec/responses.hpp"
#include "dynamo/error.hpp"

namespace sluice::dynamo {

/// Reads an object whose members are all optional: `read(name)` returns true when it took the member's value, or when
/// the reader has failed; anything else is passed over. A null counts as absent.
template <typename Read>
bool read_members(JsonReader& reader, Read read) {
  std::string_view name;
  reader.begin_object();
  while (reader.next_member(name)) {
    if (reader.peek() == JsonReader::Kind::null || !read(name)) {
      reader.skip();
    }
  }
  return !reader.failed();
}

template <typename Read>
bool read_elements(JsonReader& reader, Read read) {
  reader.begin_array();
  while (reader.next_element()) {
    if (!read()) {
      return false;
    }
  }
  return !reader.failed();
}

// Reading functions that always take the value, so that they fit into read_members. What does not fit fails the reader.

inline bool took_value(JsonReader& reader, std::string& text) {
  reader.read_string(text);
  return true;
}

inline bool took_value(JsonReader& reader, bool& flag) {
  reader.read_bool(flag);
  return true;
}

inline bool took_value(JsonReader& reader, Item& item) {
  read_item(reader, item);
  return true;
}

inline bool took_value(JsonReader& reader, std::vector<Item>& items) {
  read_elements(reader, [&] { return read_item(reader, items.emplace_back()); });
  return true;
}

template <typename Number>
requires std::same_as<Number, std::int64_t> || std::same_as<Number, double>
bool took_value(JsonReader& reader, Number& number) {
  std::string_view text;
  if (reader.read_number(text)) {
    const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc() || stop != text.data() + text.size()) {
      reader.fail("a number is out of range");
    }
  }
  return true;
}

/// A member by its name, and where its value goes.
struct Member {
  std::string_view name;
  std::variant<std::string*, bool*, std::int64_t*, double*, Item*, std::vector<Item>*> into;
};
/// Takes the value of the member of that name; false: it is none of these.
inline bool took(JsonReader& reader, std::string_view name, std::initializer_list<Member> members) {
  for (const Member& member : members) {
    if (member.name == name) {
      return std::visit([&reader](auto* into) { return took_value(reader, *into); }, member.into);
    }
  }
  return false;
}

/// What decoders of successful answers fail with.
inline Error unreadable(std::string_view what, const std::string& why) {
  Error error(ErrorKind::malformed_response, "the " + std::string(what) + " cannot be read: " + why);
  error.http_status = 200;
  error.outcome_unknown = true;
  return error;
}

/// Reads a whole response; `read` as in read_members.
template <typename Output, typename Read>
Result<Output> decode_response(std::string_view body, std::string_view what, Read read) {
  if (body.size() > kMaxResponseBytes) {
    return unreadable(what, "it is longer than 128 MiB");
  }
  Output output;
  JsonReader reader(body, kMaxJsonDepth, JsonReader::BadText::replace);
  if (read_members(reader, [&](std::string_view name) { return read(reader, output, name); }) && reader.finish()) {
    return output;
  }
  return unreadable(what, reader.reason() + " (" + reader.place() + ")");
}

}  // namespace sluice::dynamo
