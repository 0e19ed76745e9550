#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/text/number.hpp"
#include "dynamo/attribute_value.hpp"

/// Reads items that anybody may have written: what is missing or of another type is no error, but nothing.
namespace sluice::dynamo {

/// Whatever its type is; null when it is absent.
inline const AttributeValue* attribute_of(const Item& item, std::string_view name) {
  const auto found = item.find(name);
  return found == item.end() ? nullptr : &found->second;
}

/// Empty for what is no text.
inline std::string text_of(const Item& item, std::string_view name) {
  const auto* text = find<std::string>(item, name);
  return text == nullptr ? std::string() : *text;
}

/// Nothing for a number with a fraction, or beyond 64 bits.
inline std::optional<std::int64_t> whole_number(const AttributeValue* value) {
  const auto* number = value == nullptr ? nullptr : value->get<Number>();
  return number == nullptr ? std::nullopt : parse_number<std::int64_t>(number->text);
}

inline std::optional<std::int64_t> whole_number(const Item& item, std::string_view name) {
  return whole_number(attribute_of(item, name));
}

}  // namespace sluice::dynamo
