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

bool read_list(JsonReader& reader, List& list) {
  reader.begin_array();
  while (reader.next_element()) {
    if (!read_value(reader, list.emplace_back())) {
      return false;
    }
  }
  return !reader.failed();
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
    return read_list(reader, *value.get<List>());
  }
  if (type == "B") {
    return read_scalar<Binary>(reader, value, read_binary);
  }
  if (type == "BOOL") {
    bool flag = false;
    const bool fine = reader.read_bool(flag);
    value = AttributeValue(flag);
    return fine;
  }
  if (type == "NULL") {
    value = AttributeValue();
    return read_null_value(reader);
  }
  if (type == "SS") {
    return read_set<StringSet>(reader, value, read_text);
  }
  if (type == "NS") {
    return read_set<NumberSet>(reader, value, read_number_text);
  }
  return type == "BS" ? read_set<BinarySet>(reader, value, read_binary) : reader.fail("a value has an unknown type");
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
