#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dynamo/attribute_value.hpp"

/// Reads items that anybody may have written: what is missing or of another type is no error, but nothing.
namespace sluice::dynamo {

/// Whatever its type is; null when it is absent.
const AttributeValue* attribute_of(const Item& item, std::string_view name);
/// Empty for what is no text.
std::string text_of(const Item& item, std::string_view name);
/// Nothing for a number with a fraction, or beyond 64 bits.
std::optional<std::int64_t> whole_number(const AttributeValue* value);
std::optional<std::int64_t> whole_number(const Item& item, std::string_view name);

}  // namespace sluice::dynamo
