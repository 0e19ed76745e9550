#pragma once

#include <concepts>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::dynamo {

class AttributeValue;

/// DynamoDB's types. Numbers are text, so that all of their 38 digits live; binary is raw bytes, not base64.
struct Null {
  friend bool operator==(const Null&, const Null&) = default;
};
struct Number {
  std::string text;
  friend bool operator==(const Number&, const Number&) = default;
};
struct Binary {
  std::string bytes;
  friend bool operator==(const Binary&, const Binary&) = default;
};
struct StringSet {
  std::vector<std::string> values;
  friend bool operator==(const StringSet&, const StringSet&) = default;
};
struct NumberSet {
  std::vector<std::string> values;
  friend bool operator==(const NumberSet&, const NumberSet&) = default;
};
struct BinarySet {
  std::vector<std::string> values;
  friend bool operator==(const BinarySet&, const BinarySet&) = default;
};
using List = std::vector<AttributeValue>;
using Map = std::map<std::string, AttributeValue, std::less<>>;

/// An item is its attributes by name.
using Item = Map;

/// One attribute's value. A value type; equality compares numbers and sets as written. Converts from each of its types,
/// and from nothing that would silently become another one: no pointer or integer turns into a BOOL.
class AttributeValue {
 public:
  using Variant = std::variant<Null, bool, std::string, Number, Binary, List, Map, StringSet, NumberSet, BinarySet>;

  AttributeValue() = default;  // NULL
  // NOLINTBEGIN(google-explicit-constructor): a value is its content.
  AttributeValue(Null) {}
  template <std::same_as<bool> T>
  AttributeValue(T value) : value_(value) {}
  AttributeValue(std::string value) : value_(std::move(value)) {}
  AttributeValue(std::string_view value) : value_(std::string(value)) {}
  AttributeValue(const char* value) : value_(std::string(value)) {}
  AttributeValue(Number value) : value_(std::move(value)) {}
  AttributeValue(Binary value) : value_(std::move(value)) {}
  AttributeValue(List value) : value_(std::move(value)) {}
  AttributeValue(Map value) : value_(std::move(value)) {}
  AttributeValue(StringSet value) : value_(std::move(value)) {}
  AttributeValue(NumberSet value) : value_(std::move(value)) {}
  AttributeValue(BinarySet value) : value_(std::move(value)) {}
  // NOLINTEND(google-explicit-constructor)
  /// A number from an integer.
  static AttributeValue number(long long value) { return Number{std::to_string(value)}; }

  template <typename T>
  bool is() const {
    return std::holds_alternative<T>(value_);
  }
  /// The value as T, or null when it is of another type.
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&value_);
  }
  template <typename T>
  T* get() {
    return std::get_if<T>(&value_);
  }
  const Variant& variant() const { return value_; }

  friend bool operator==(const AttributeValue&, const AttributeValue&) = default;

 private:
  Variant value_;
};

/// The value of an attribute by name, or null when absent or of another type.
template <typename T>
const T* find(const Item& item, std::string_view name) {
  const auto found = item.find(name);
  return found == item.end() ? nullptr : found->second.get<T>();
}

}  // namespace sluice::dynamo
