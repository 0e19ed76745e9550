#include "host/operate/json_value.hpp"

#include <variant>

#include "base/text/json_check.hpp"

namespace sluice::operate {

namespace {

bool read_value(JsonReader& reader, JsonValue& value) {
  using Kind = JsonValue::Kind;
  std::string_view text;
  value.kind = reader.peek();
  switch (value.kind) {
    case Kind::object:
      reader.begin_object();
      while (reader.next_member(text)) {
        value.keys.emplace_back(text);
        read_value(reader, value.items.emplace_back());
      }
      return !reader.failed();
    case Kind::array:
      reader.begin_array();
      while (reader.next_element()) {
        read_value(reader, value.items.emplace_back());
      }
      return !reader.failed();
    case Kind::string:
      return reader.read_string(value.text);
    case Kind::number:
      reader.read_number(text);
      value.text = text;
      return !reader.failed();
    case Kind::boolean:
      return reader.read_bool(value.truth);
    case Kind::null:
      return reader.read_null();
    case Kind::nothing:
      break;
  }
  return reader.skip();
}

}  // namespace

JsonValue JsonValue::of_string(std::string text) {
  JsonValue value;
  value.kind = Kind::string;
  value.text = std::move(text);
  return value;
}

const JsonValue* JsonValue::member(std::string_view name) const {
  for (std::size_t index = keys.size(); index > 0; --index) {
    if (keys[index - 1] == name) {
      return &items[index - 1];
    }
  }
  return nullptr;
}

const JsonValue* JsonValue::at(std::span<const queue::PathStep> path) const {
  const JsonValue* value = this;
  for (const queue::PathStep& step : path) {
    if (const auto* key = std::get_if<std::string>(&step)) {
      value = value->member(*key);
    } else {
      const std::size_t index = std::get<std::size_t>(step);
      value = value->kind == Kind::array && index < value->items.size() ? &value->items[index] : nullptr;
    }
    if (value == nullptr) {
      return nullptr;
    }
  }
  return value;
}

void JsonValue::add(std::string key, JsonValue value) {
  kind = Kind::object;
  keys.push_back(std::move(key));
  items.push_back(std::move(value));
}

Result<JsonValue> parse_json(std::string_view text) {
  JsonValue value;
  JsonReader reader(text, kJsonDepth, JsonReader::BadText::refuse);
  if (read_value(reader, value) && reader.finish()) {
    return value;
  }
  if (reader.offset() >= text.size()) {
    return Error(ErrorCode::invalid, "no JSON: it ends too early");
  }
  return Error(ErrorCode::invalid, "no JSON: " + reader.reason() + " at " + reader.place());
}

JsonValue json_or_text(const queue::Message& message) {
  auto parsed = message.content_type == queue::kJson ? parse_json(message.body)
                                                     : Result<JsonValue>(Error(ErrorCode::invalid, "no JSON"));
  return parsed ? std::move(*parsed) : JsonValue::of_string(message.body);
}

void write(JsonWriter& json, const JsonValue& value) {
  using Kind = JsonValue::Kind;
  switch (value.kind) {
    case Kind::null:
    case Kind::nothing:
      return json.null();
    case Kind::boolean:
      return json.value(value.truth);
    case Kind::number:
      return json.word(value.text);
    case Kind::string:
      return json.value(value.text);
    case Kind::array:
      json.begin_array();
      for (const JsonValue& item : value.items) {
        write(json, item);
      }
      return json.end_array();
    case Kind::object:
      json.begin_object();
      for (std::size_t index = 0; index < value.items.size(); ++index) {
        json.key(value.keys[index]);
        write(json, value.items[index]);
      }
      return json.end_object();
  }
}

std::string to_json(const JsonValue& value, JsonWriter::Layout layout) {
  JsonWriter json(layout, JsonWriter::Strings::plain);
  write(json, value);
  return json.take_text();
}

}  // namespace sluice::operate
