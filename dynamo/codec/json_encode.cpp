#include <type_traits>
#include <variant>

#include "base/text/base64.hpp"
#include "base/text/json_string.hpp"
#include "dynamo/codec/json_codec.hpp"

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

}  // namespace sluice::dynamo
