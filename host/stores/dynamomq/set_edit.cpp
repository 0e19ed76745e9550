#include "host/stores/dynamomq/set_edit.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/base64.hpp"

namespace sluice::queue::dynamomq {
namespace {

using dynamo::AttributeValue;
using Elements = std::vector<std::string>;

/// The elements of a set of any kind; null for what is none.
Elements* elements(AttributeValue& value) {
  if (auto* strings = value.get<dynamo::StringSet>()) {
    return &strings->values;
  }
  if (auto* numbers = value.get<dynamo::NumberSet>()) {
    return &numbers->values;
  }
  auto* binaries = value.get<dynamo::BinarySet>();
  return binaries == nullptr ? nullptr : &binaries->values;
}

/// The value as an element of such a set.
std::optional<std::string> element_of(const AttributeValue& set, const AttributeValue& value) {
  if (set.is<dynamo::NumberSet>()) {
    const auto* number = value.get<dynamo::Number>();
    return number == nullptr ? std::nullopt : std::optional(number->text);
  }
  const auto* text = value.get<std::string>();
  if (text == nullptr) {
    return std::nullopt;
  }
  return set.is<dynamo::BinarySet>() ? decode_base64(*text) : std::optional(*text);
}

bool holds_one_twice(Elements values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) != values.end();
}

Error beyond(std::size_t size, std::size_t index) {
  return {ErrorCode::invalid, "has " + std::to_string(size) + " elements, and no [" + std::to_string(index) + "]"};
}

const char* wanted_element(const AttributeValue& set) {
  if (set.is<dynamo::StringSet>()) {
    return "a set of strings holds nothing but text";
  }
  return set.is<dynamo::NumberSet>() ? "a set of numbers holds nothing but numbers"
                                     : "a set of binaries holds nothing but Base64 text";
}

}  // namespace

bool is_set(const AttributeValue& value) {
  return value.is<dynamo::StringSet>() || value.is<dynamo::NumberSet>() || value.is<dynamo::BinarySet>();
}

AttributeValue of_the_type_of(const AttributeValue& before, AttributeValue value) {
  if (before.is<dynamo::Binary>() && value.is<std::string>()) {
    auto bytes = decode_base64(*value.get<std::string>());
    return bytes ? AttributeValue(dynamo::Binary{std::move(*bytes)}) : std::move(value);
  }
  const auto* list = value.get<dynamo::List>();
  if (!is_set(before) || list == nullptr || list->empty()) {
    return value;
  }
  AttributeValue set = before;
  Elements& values = *elements(set);
  values.clear();
  for (const AttributeValue& item : *list) {
    auto element = element_of(before, item);
    if (!element) {
      return value;
    }
    values.push_back(std::move(*element));
  }
  return holds_one_twice(values) ? std::move(value) : std::move(set);
}

Result<void> set_element(AttributeValue& set, std::size_t index, const AttributeValue& element) {
  Elements& values = *elements(set);
  auto wanted = element_of(set, element);
  if (!wanted) {
    return Error(ErrorCode::invalid, wanted_element(set));
  }
  if (index > values.size()) {
    return beyond(values.size(), index);
  }
  if (index == values.size()) {
    values.push_back(std::move(*wanted));
  } else {
    values[index] = std::move(*wanted);
  }
  return {};
}

Result<void> remove_element(AttributeValue& set, std::size_t index) {
  Elements& values = *elements(set);
  if (index >= values.size()) {
    return beyond(values.size(), index);
  }
  if (values.size() == 1) {
    return Error(ErrorCode::invalid, "no set is empty; take the whole set away instead");
  }
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(index));
  return {};
}

}  // namespace sluice::queue::dynamomq
