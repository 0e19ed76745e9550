#include "dynamo/codec/json_codec.hpp"

#include <cstdint>
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
    typed("S", [&] { append_json_string(out, text); });
  }
  void operator()(const Number& number) const {
    typed("N", [&] { append_json_string(out, number.text); });
  }
  void operator()(const Binary& binary) const {
    typed("B", [&] { append_base64_string(out, binary.bytes); });
  }
  void operator()(const Map& map) const {
    typed("M", [&] { append_item(out, map); });
  }
  void operator()(const List& list) const {
    all("L", list, [&](const AttributeValue& value) { append_value(out, value); });
  }
  void operator()(const StringSet& set) const {
    all("SS", set.values, [&](const std::string& text) { append_json_string(out, text); });
  }
  void operator()(const NumberSet& set) const {
    all("NS", set.values, [&](const std::string& text) { append_json_string(out, text); });
  }
  void operator()(const BinarySet& set) const {
    all("BS", set.values, [&](const std::string& bytes) { append_base64_string(out, bytes); });
  }

 private:
  template <typename Append>
  void typed(std::string_view type, Append append) const {
    out += "{\"";
    out += type;
    out += "\":";
    append();
    out.push_back('}');
  }
  template <typename Elements, typename Append>
  void all(std::string_view type, const Elements& elements, Append append) const {
    typed(type, [&] { append_joined(out, "[]", elements, append); });
  }
};

/// Reads the elements of an array, each by `read`.
template <typename Elements, typename Read>
bool read_elements(JsonReader& reader, Elements& elements, Read read) {
  reader.begin_array();
  while (reader.next_element()) {
    if (!read(reader, elements.emplace_back())) {
      return false;
    }
  }
  return !reader.failed();
}

/// Reads the members of an object, each value by `read`.
template <typename Read>
bool read_members(JsonReader& reader, Map& map, Read read) {
  std::string_view name;
  reader.begin_object();
  while (reader.next_member(name)) {
    const auto [slot, added] = map.try_emplace(std::string(name));
    if (!added) {
      return reader.fail("the name " + json_quoted(slot->first.substr(0, 60)) + " is there twice");
    }
    if (!read(reader, slot->second)) {
      return false;
    }
  }
  return !reader.failed();
}

bool read_flag(JsonReader& reader, AttributeValue& value) {
  bool flag = false;
  const bool fine = reader.read_bool(flag);
  value = AttributeValue(flag);
  return fine;
}

// Longest text of a number that comes from a server: plain digits down to 1E-130 and 38 more, with room to spare.
constexpr std::size_t kMaxNumberText = 512;

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
  const bool fine = read_elements(reader, set.values, read);
  value = AttributeValue(std::move(set));
  return fine;
}

bool read_typed(JsonReader& reader, std::string_view type, AttributeValue& value) {
  if (type == "S") {
    return read_scalar<std::string>(reader, value, read_text);
  }
  if (type == "N") {
    return read_scalar<Number>(reader, value, read_number_text);
  }
  if (type == "M") {
    value = Map();
    return read_item(reader, *value.get<Map>());
  }
  if (type == "L") {
    value = List();
    return read_elements(reader, *value.get<List>(), &read_value);
  }
  if (type == "B") {
    return read_scalar<Binary>(reader, value, read_binary);
  }
  if (type == "BOOL") {
    return read_flag(reader, value);
  }
  if (type == "NULL") {
    const bool fine = read_flag(reader, value) && (value == AttributeValue(true) || reader.fail("NULL is not true"));
    value = AttributeValue();
    return fine;
  }
  if (type == "SS") {
    return read_set<StringSet>(reader, value, read_text);
  }
  if (type == "NS") {
    return read_set<NumberSet>(reader, value, read_number_text);
  }
  return type == "BS" ? read_set<BinarySet>(reader, value, read_binary) : reader.fail("a value has an unknown type");
}

// DynamoDB's own bounds.
constexpr std::size_t kMaxSignificantDigits = 38;
constexpr std::int64_t kLargestMagnitude = 125;
constexpr std::int64_t kSmallestMagnitude = -130;

// Appends a value by its type; one overload each.
struct PlainWriter {
  std::string& out;

  void operator()(const Null&) const { out += "null"; }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(const std::string& text) const { append_json_string(out, text); }
  void operator()(const Number& number) const { append_json_number(out, number.text); }
  void operator()(const Binary& binary) const { append_base64_string(out, binary.bytes); }
  void operator()(const List& list) const { append_all(list, append_plain_json); }
  void operator()(const StringSet& set) const { append_all(set.values, append_json_string); }
  void operator()(const NumberSet& set) const { append_all(set.values, append_json_number); }
  void operator()(const BinarySet& set) const { append_all(set.values, append_base64_string); }
  void operator()(const Map& map) const {
    append_joined(out, "{}", map, [this](const auto& member) {
      append_json_string(out, member.first);
      out.push_back(':');
      append_plain_json(out, member.second);
    });
  }

 private:
  template <typename Elements, typename Append>
  void append_all(const Elements& elements, Append append) const {
    append_joined(out, "[]", elements, [&](const auto& element) { append(out, element); });
  }
};

bool read_plain_number(JsonReader& reader, AttributeValue& value) {
  std::string_view text;
  if (!reader.read_number(text)) {
    return false;
  }
  const std::string objection = number_objection(text);
  if (!objection.empty()) {
    const bool long_text = text.size() > 60;
    return reader.fail("DynamoDB cannot hold the number " + std::string(text.substr(0, 60)) +
                       (long_text ? "...: " : ": ") + objection);
  }
  // A zero with a huge exponent is still a zero; not every reader of it would agree.
  const bool zero = text.substr(0, text.find_first_of("eE")).find_first_of("123456789") == std::string_view::npos;
  const bool odd = text.find_first_of("eE") != std::string_view::npos;
  value = AttributeValue(Number{zero && odd ? "0" : std::string(text)});
  return true;
}

bool read_plain(JsonReader& reader, std::size_t depth, AttributeValue& value) {
  if (depth > kMaxPlainJsonDepth) {
    return reader.fail("it is nested deeper than DynamoDB's 32 levels");
  }
  const auto read_inner = [depth](JsonReader& inner, AttributeValue& into) {
    return read_plain(inner, depth + 1, into);
  };
  switch (reader.peek()) {
    case JsonReader::Kind::object:
      value = Map();
      return read_members(reader, *value.get<Map>(), read_inner);
    case JsonReader::Kind::array:
      value = List();
      return read_elements(reader, *value.get<List>(), read_inner);
    case JsonReader::Kind::number:
      return read_plain_number(reader, value);
    case JsonReader::Kind::string:
      return read_scalar<std::string>(reader, value, &read_text);
    case JsonReader::Kind::boolean:
      return read_flag(reader, value);
    case JsonReader::Kind::null:
      value = AttributeValue();
      return reader.read_null();
    case JsonReader::Kind::nothing:
      break;
  }
  return reader.fail("a value is expected");
}

}  // namespace

void append_value(std::string& out, const AttributeValue& value) { std::visit(ValueWriter{out}, value.variant()); }

void append_names(std::string& out, const std::map<std::string, std::string>& names) {
  append_joined(out, "{}", names, [&out](const auto& name) {
    append_json_string(out, name.first);
    out.push_back(':');
    append_json_string(out, name.second);
  });
}

void append_item(std::string& out, const Item& item) {
  append_joined(out, "{}", item, [&out](const auto& attribute) {
    append_json_string(out, attribute.first);
    out.push_back(':');
    append_value(out, attribute.second);
  });
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
  if (!read_typed(reader, name, value)) {
    return false;
  }
  if (reader.next_member(name)) {
    return reader.fail("a value has several types");
  }
  return !reader.failed();
}

bool read_item(JsonReader& reader, Item& item) { return read_members(reader, item, &read_value); }

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

void append_plain_json(std::string& out, const AttributeValue& value) { std::visit(PlainWriter{out}, value.variant()); }

std::string to_plain_json(const AttributeValue& value) {
  std::string out;
  append_plain_json(out, value);
  return out;
}

std::string number_objection(std::string_view text) {
  const std::optional<Decimal> decimal = parse_decimal(text);
  if (!decimal) {
    return "it is not a number";
  }
  const DecimalValue value = value_of(*decimal);
  if (value.digits.empty()) {
    return "";
  }
  if (value.digits.size() > kMaxSignificantDigits) {
    return "it has " + std::to_string(value.digits.size()) + " significant digits and DynamoDB keeps 38";
  }
  const std::int64_t magnitude = value.exponent - 1;  // of the first digit
  if (magnitude > kLargestMagnitude) {
    return "it is larger than DynamoDB's largest number, 9.99E+125";
  }
  if (magnitude < kSmallestMagnitude) {
    return "it is closer to zero than DynamoDB's smallest number, 1E-130";
  }
  return "";
}

Result<AttributeValue> from_plain_json(std::string_view json) {
  if (json.size() > kMaxPlainJsonBytes) {
    return Error(ErrorKind::validation, "the JSON is longer than 16 MiB, far beyond the 400 KB of an item");
  }
  AttributeValue value;
  JsonReader reader(json, kMaxPlainJsonDepth, JsonReader::BadText::refuse);
  if (read_plain(reader, 1, value) && reader.finish()) {
    return value;
  }
  return Error(ErrorKind::validation, "the JSON is wrong at " + reader.place() + ": " + reader.reason());
}

}  // namespace sluice::dynamo
