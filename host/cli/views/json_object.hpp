#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include "base/text/decimal.hpp"
#include "base/text/json_writer.hpp"

/// Objects of JSON whose members stand side by side: `json_line("id", id, "shards", 4)`. A member's content is a value
/// that JsonWriter knows, or a function that writes one.
namespace sluice::cli {

inline void put_members(JsonWriter& /*json*/) {}

template <typename Content, typename... Others>
void put_members(JsonWriter& json, std::string_view name, const Content& content, const Others&... others) {
  json.key(name);
  if constexpr (std::invocable<const Content&, JsonWriter&>) {
    content(json);
  } else {
    json.value(content);
  }
  put_members(json, others...);
}

template <typename... Members>
void put_object(JsonWriter& json, const Members&... members) {
  json.begin_object();
  put_members(json, members...);
  json.end_object();
}

/// An array, each element of which `write` writes.
template <typename Elements, typename Write>
auto array_of(const Elements& elements, Write write) {
  return [&elements, write = std::move(write)](JsonWriter& json) {
    json.begin_array();
    for (const auto& element : elements) {
      write(json, element);
    }
    json.end_array();
  };
}

/// A number with so many digits behind the point.
inline auto figure(double number, int digits) {
  return [text = fixed_decimal(number, digits)](JsonWriter& json) { json.word(text); };
}

/// The content, or null where it is not there.
template <typename Content>
auto or_null(bool there, Content content) {
  return [there, content = std::move(content)](JsonWriter& json) {
    if (!there) {
      json.null();
    } else if constexpr (std::invocable<const Content&, JsonWriter&>) {
      content(json);
    } else {
      json.value(content);
    }
  };
}

/// A whole object, as a command prints it.
template <typename... Members>
std::string json_line(const Members&... members) {
  JsonWriter json(JsonWriter::Layout::indented);
  put_object(json, members...);
  return json.take_line();
}

}  // namespace sluice::cli
