#include "dynamo/codec/json_codec.hpp"

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/text/base64.hpp"
#include "base/text/decimal.hpp"
#include "base/text/json_reader.hpp"
#include "base/text/json_string.hpp"

namespace sluice::dynamo {
namespace {

// What most values of a message take; only saves the first few growths of the string.
constexpr std::size_t kTypicalItemBytes = 1024;

template <typename Append>
void append_list(std::string& out, std::string_view type, std::size_t size, Append append) {
  out += "{\"";
  out += type;
  out += "\":[";
  for (std::size_t i = 0; i < size; ++i) {
    if (i > 0) {
      out.push_back(',');
    }
    append(i);
  }
  out += "]}";
}

void append_base64_string(std::string& out, std::string_view bytes) {
  out.push_back('"');
  append_base64(out, bytes);
  out.push_back('"');
}

// Appends a value by its type; one overload each.
struct ValueWriter {
  std::string& out;

  void operator()(const Null&) const { out += "{\"NULL\":true}"; }
  void operator()(bool value) const { out += value ? "{\"BOOL\":true}" : "{\"BOOL\":false}"; }
  void operator()(const std::string& text) const {
    out += "{\"S\":";
    append_json_string(out, text);
    out.push_back('}');
  }
  void operator()(const Number& number) const {
    out += "{\"N\":";
    append_json_string(out, number.text);
    out.push_back('}');
  }
  void operator()(const Binary& binary) const {
    out += "{\"B\":";
    append_base64_string(out, binary.bytes);
    out.push_back('}');
  }
  void operator()(const List& list) const {
    append_list(out, "L", list.size(), [&](std::size_t i) { append_value(out, list[i]); });
  }
  void operator()(const Map& map) const {
    out += "{\"M\":";
    append_item(out, map);
    out.push_back('}');
  }
  void operator()(const StringSet& set) const {
    append_list(out, "SS", set.values.size(), [&](std::size_t i) { append_json_string(out, set.values[i]); });
  }
  void operator()(const NumberSet& set) const {
    append_list(out, "NS", set.values.size(), [&](std::size_t i) { append_json_string(out, set.values[i]); });
  }
  void operator()(const BinarySet& set) const {
    append_list(out, "BS", set.values.size(), [&](std::size_t i) { append_base64_string(out, set.values[i]); });
  }
};

// Longest text of a number that comes from a server: plain digits down to 1E-130 and 38 more, with room to spare.
constexpr std::size_t kMaxNumberText = 512;

enum class Type { string, number, binary, boolean, null, list, map, string_set, number_set, binary_set };

std::optional<Type> type_of(std::string_view name) {
  constexpr std::pair<std::string_view, Type> kTypes[] = {
      {"S", Type::string},      {"N", Type::number},      {"M", Type::map},     {"L", Type::list},
      {"B", Type::binary},      {"BOOL", Type::boolean},  {"NULL", Type::null}, {"SS", Type::string_set},
      {"NS", Type::number_set}, {"BS", Type::binary_set},
  };
  for (const auto& [type_name, type] : kTypes) {
    if (type_name == name) {
      return type;
    }
  }
  return std::nullopt;
}

bool read_number_text(JsonReader& reader, std::string& text) {
  if (!reader.read_string(text)) {
    return false;
  }
  return (text.size() <= kMaxNumberText && parse_decimal(text)) || reader.fail("N is not a number");
}

bool read_binary(JsonReader& reader, std::string& bytes) {
  std::string text;
  if (!reader.read_string(text)) {
    return false;
  }
  std::optional<std::string> decoded = decode_base64(text);
  if (!decoded) {
    return reader.fail("B is not base64");
  }
  bytes = std::move(*decoded);
  return true;
}

bool read_text(JsonReader& reader, std::string& text) { return reader.read_string(text); }

bool read_null_value(JsonReader& reader) {
  bool flag = false;
  return reader.read_bool(flag) && (flag || reader.fail("NULL is not true"));
}

// Reads one scalar of a type that wraps a string.
template <typename Value, typename Read>
bool read_scalar(JsonReader& reader, AttributeValue& value, Read read) {
  std::string text;
  if (!read(reader, text)) {
    return false;
  }
  value = AttributeValue(Value{std::move(text)});
  return true;
}

template <typename Set, typename Read>
bool read_set(JsonReader& reader, AttributeValue& value, Read read) {
  Set set;
  reader.begin_array();
  while (reader.next_element()) {
    if (!read(reader, set.values.emplace_back())) {
      return false;
    }
  }
  value = AttributeValue(std::move(set));
  return !reader.failed();
}

bool read_list(JsonReader& reader, AttributeValue& value) {
  List list;
  reader.begin_array();
  while (reader.next_element()) {
    if (!read_value(reader, list.emplace_back())) {
      return false;
    }
  }
  value = AttributeValue(std::move(list));
  return !reader.failed();
}

bool read_typed(JsonReader& reader, Type type, AttributeValue& value) {
  switch (type) {
    case Type::string:
      return read_scalar<std::string>(reader, value, read_text);
    case Type::number:
      return read_scalar<Number>(reader, value, read_number_text);
    case Type::binary:
      return read_scalar<Binary>(reader, value, read_binary);
    case Type::boolean: {
      bool flag = false;
      const bool fine = reader.read_bool(flag);
      value = AttributeValue(flag);
      return fine;
    }
    case Type::null:
      value = AttributeValue();
      return read_null_value(reader);
    case Type::list:
      return read_list(reader, value);
    case Type::map: {
      Map map;
      const bool fine = read_item(reader, map);
      value = AttributeValue(std::move(map));
      return fine;
    }
    case Type::string_set:
      return read_set<StringSet>(reader, value, read_text);
    case Type::number_set:
      return read_set<NumberSet>(reader, value, read_number_text);
    case Type::binary_set:
      return read_set<BinarySet>(reader, value, read_binary);
  }
  return false;
}

}  // namespace

void append_value(std::string& out, const AttributeValue& value) { std::visit(ValueWriter{out}, value.variant()); }

void append_names(std::string& out, const std::map<std::string, std::string>& names) {
  out.push_back('{');
  const char* separator = "";
  for (const auto& [placeholder, name] : names) {
    out += separator;
    separator = ",";
    append_json_string(out, placeholder);
    out.push_back(':');
    append_json_string(out, name);
  }
  out.push_back('}');
}

void append_item(std::string& out, const Item& item) {
  out.push_back('{');
  bool first = true;
  for (const auto& [name, value] : item) {
    if (!first) {
      out.push_back(',');
    }
    first = false;
    append_json_string(out, name);
    out.push_back(':');
    append_value(out, value);
  }
  out.push_back('}');
}

std::string encode_item(const Item& item) {
  std::string out;
  out.reserve(kTypicalItemBytes);
  append_item(out, item);
  return out;
}

bool read_value(JsonReader& reader, AttributeValue& value) {
  std::string_view name;
  if (!reader.begin_object()) {
    return false;
  }
  if (!reader.next_member(name)) {
    return reader.fail("a value names no type");
  }
  const std::optional<Type> type = type_of(name);
  if (!type) {
    return reader.fail("a value has an unknown type");
  }
  if (!read_typed(reader, *type, value)) {
    return false;
  }
  if (reader.next_member(name)) {
    return reader.fail("a value has several types");
  }
  return !reader.failed();
}

bool read_item(JsonReader& reader, Item& item) {
  std::string_view name;
  reader.begin_object();
  while (reader.next_member(name)) {
    const auto [slot, added] = item.try_emplace(std::string(name));
    if (!added) {
      return reader.fail("an attribute is there twice");
    }
    if (!read_value(reader, slot->second)) {
      return false;
    }
  }
  return !reader.failed();
}

Result<Item> decode_item(std::string_view json) {
  Item item;
  JsonReader reader(json, 2 * kMaxValueDepth + 1, JsonReader::BadText::replace);
  if (json.size() > kMaxItemJsonBytes) {
    reader.fail("it is longer than 16 MiB");
  }
  if (read_item(reader, item) && reader.finish()) {
    return item;
  }
  return Error(ErrorKind::malformed_response,
               "the item cannot be read: " + reader.reason() + " (" + reader.place() + ")");
}

}  // namespace sluice::dynamo
