#include "tests/support/dynamodb_model/values.hpp"

#include <algorithm>
#include <utility>

#include "base/text/base64.hpp"
#include "tests/support/dynamodb_model/failure.hpp"
#include "tests/support/dynamodb_model/numbers.hpp"

namespace sluice::test::model {
namespace {

namespace json = boost::json;

constexpr int kMaxDepth = 32;

std::string_view text_of(const json::value& value) {
  if (!value.is_string()) {
    throw Failure{"SerializationException", "Unexpected value type in payload"};
  }
  return {value.get_string().data(), value.get_string().size()};
}

const json::array& array_of(const json::value& value) {
  if (!value.is_array()) {
    throw Failure{"SerializationException", "Unexpected field type"};
  }
  return value.get_array();
}

const json::object& object_of(const json::value& value) {
  if (!value.is_object()) {
    throw Failure{"SerializationException", "Unexpected value type in payload"};
  }
  return value.get_object();
}

std::string bytes_of(const json::value& value) {
  auto bytes = decode_base64(text_of(value));
  if (!bytes) {
    throw Failure{"SerializationException", "Base64 encoded length is expected a multiple of 4 bytes"};
  }
  return std::move(*bytes);
}

std::string number_of(const json::value& value) { return canonical_number(text_of(value)); }

template <typename Less>
void sort_set(std::vector<std::string>& values, const char* kind, Less less) {
  if (values.empty()) {
    throw invalid_values("An " + std::string(kind) + " set  may not be empty");
  }
  std::sort(values.begin(), values.end(), less);
  if (std::adjacent_find(values.begin(), values.end()) != values.end()) {
    throw invalid_values("Input collection contains duplicates.");
  }
}

AttributeValue read_set(std::string_view type, const json::array& elements) {
  std::vector<std::string> values;
  values.reserve(elements.size());
  for (const json::value& element : elements) {
    values.push_back(type == "SS" ? std::string(text_of(element))
                                  : (type == "NS" ? number_of(element) : bytes_of(element)));
  }
  if (type == "NS") {
    sort_set(values, "number", [](const auto& a, const auto& b) { return compare_numbers(a, b) < 0; });
    return dynamo::NumberSet{std::move(values)};
  }
  sort_set(values, type == "SS" ? "string" : "binary", std::less<>());
  return type == "SS" ? AttributeValue(dynamo::StringSet{std::move(values)})
                      : AttributeValue(dynamo::BinarySet{std::move(values)});
}

AttributeValue read_value_at(const json::value& value, int depth);

Item read_map(const json::object& object, int depth) {
  Item out;
  for (const auto& [name, value] : object) {
    out.emplace(std::string(name.data(), name.size()), read_value_at(value, depth));
  }
  return out;
}

AttributeValue read_container(std::string_view type, const json::value& content, int depth) {
  if (type == "M") {
    return read_map(object_of(content), depth + 1);
  }
  if (type == "L") {
    dynamo::List list;
    for (const json::value& element : array_of(content)) {
      list.push_back(read_value_at(element, depth + 1));
    }
    return list;
  }
  if (type == "SS" || type == "NS" || type == "BS") {
    return read_set(type, array_of(content));
  }
  throw validation("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes");
}

AttributeValue read_value_at(const json::value& value, int depth) {
  if (depth > kMaxDepth) {
    throw validation(
        "Nesting Levels have exceeded supported limits: Attributes have nested levels beyond supported limit");
  }
  const json::object& object = object_of(value);
  if (object.empty()) {
    throw validation("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes");
  }
  if (object.size() > 1) {
    throw validation(
        "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes");
  }
  const std::string_view type(object.begin()->key().data(), object.begin()->key().size());
  const json::value& content = object.begin()->value();
  if (type == "S") {
    return std::string(text_of(content));
  }
  if (type == "N") {
    return dynamo::Number{number_of(content)};
  }
  if (type == "B") {
    return dynamo::Binary{bytes_of(content)};
  }
  if (type == "BOOL" || type == "NULL") {
    if (!content.is_bool()) {
      throw Failure{"SerializationException", "Unexpected token received from parser"};
    }
    if (type == "BOOL") {
      return content.get_bool();
    }
    if (!content.get_bool()) {
      throw invalid_values("Null attribute value types must have the value of true");
    }
    return dynamo::Null{};
  }
  return read_container(type, content, depth);
}

struct Bytes {
  std::size_t operator()(const dynamo::Null&) const { return 1; }
  std::size_t operator()(bool) const { return 1; }
  std::size_t operator()(const std::string& text) const { return text.size(); }
  std::size_t operator()(const dynamo::Number& number) const { return number_bytes(number.text); }
  std::size_t operator()(const dynamo::Binary& binary) const { return binary.bytes.size(); }
  std::size_t operator()(const dynamo::List& list) const {
    std::size_t total = 3;
    for (const AttributeValue& value : list) {
      total += 1 + value_bytes(value);
    }
    return total;
  }
  std::size_t operator()(const dynamo::Map& map) const { return 3 + map.size() + item_bytes(map); }
  std::size_t operator()(const dynamo::StringSet& set) const { return lengths(set.values); }
  std::size_t operator()(const dynamo::NumberSet& set) const {
    std::size_t total = 0;
    for (const std::string& number : set.values) {
      total += number_bytes(number);
    }
    return total;
  }
  std::size_t operator()(const dynamo::BinarySet& set) const { return lengths(set.values); }

  static std::size_t lengths(const std::vector<std::string>& values) {
    std::size_t total = 0;
    for (const std::string& value : values) {
      total += value.size();
    }
    return total;
  }
};

}  // namespace

AttributeValue read_value(const json::value& value) { return read_value_at(value, 1); }

Item read_item(const json::value& value) { return read_map(object_of(value), 1); }

std::string_view type_of(const AttributeValue& value) {
  static constexpr std::string_view kNames[] = {"NULL", "BOOL", "S", "N", "B", "L", "M", "SS", "NS", "BS"};
  return kNames[value.variant().index()];
}

std::optional<int> compare(const AttributeValue& a, const AttributeValue& b) {
  const auto* text = a.get<std::string>();
  if (const auto* other = b.get<std::string>(); text != nullptr && other != nullptr) {
    return text->compare(*other);
  }
  const auto* number = a.get<dynamo::Number>();
  if (const auto* other = b.get<dynamo::Number>(); number != nullptr && other != nullptr) {
    return compare_numbers(number->text, other->text);
  }
  const auto* binary = a.get<dynamo::Binary>();
  if (const auto* other = b.get<dynamo::Binary>(); binary != nullptr && other != nullptr) {
    return binary->bytes.compare(other->bytes);
  }
  return std::nullopt;
}

std::string sort_bytes(const AttributeValue& value) {
  if (const auto* text = value.get<std::string>()) {
    return *text;
  }
  if (const auto* number = value.get<dynamo::Number>()) {
    return number_sort_bytes(number->text);
  }
  const auto* binary = value.get<dynamo::Binary>();
  return binary == nullptr ? std::string() : binary->bytes;
}

std::size_t value_bytes(const AttributeValue& value) { return std::visit(Bytes{}, value.variant()); }

std::size_t item_bytes(const Item& item) {
  std::size_t total = 0;
  for (const auto& [name, value] : item) {
    total += name.size() + value_bytes(value);
  }
  return total;
}

}  // namespace sluice::test::model
