#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text/json_reader.hpp"
#include "base/text/json_writer.hpp"
#include "host/queue/operator.hpp"

namespace sluice::operate {

/// A JSON document that loses nothing: numbers keep their text, objects their order. A value.
struct JsonValue {
  using Kind = JsonReader::Kind;

  Kind kind = Kind::null;
  bool truth = false;
  std::string text;               ///< of a number as it is written, of a string its characters
  std::vector<std::string> keys;  ///< of an object; as many as `items`
  std::vector<JsonValue> items;   ///< an array's elements, an object's values

  static JsonValue of_string(std::string text);

  /// The member of that name, the last one where there are several; null when there is none, or this is no object.
  const JsonValue* member(std::string_view name) const;
  /// What the path leads to; null when it leads nowhere.
  const JsonValue* at(std::span<const queue::PathStep> path) const;
  void add(std::string key, JsonValue value);
};

/// Reads exactly one value: UTF-8, nested at most kJsonDepth deep. The error says what is wrong and at which line and
/// column.
Result<JsonValue> parse_json(std::string_view text);
/// A message's body: as its JSON where it says that it is JSON, and is; else as one text.
JsonValue json_or_text(const queue::Message& message);

void write(JsonWriter& json, const JsonValue& value);
/// As text for programs.
std::string to_json(const JsonValue& value, JsonWriter::Layout layout = JsonWriter::Layout::compact);

}  // namespace sluice::operate
