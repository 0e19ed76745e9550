#pragma once

#include "base/text/json_reader.hpp"
#include "dynamo/attribute_value.hpp"
#include "dynamo/codec/json_codec.hpp"

namespace sluice::dynamo {

/// How deep the JSON of a response goes: two levels a value, and the wrapping around items.
inline constexpr std::size_t kMaxJsonDepth = 2 * kMaxValueDepth + 16;

/// Read an item, or one value, at the reader's place; strict as decode_item. False when the reader has failed.
bool read_item(JsonReader& reader, Item& item);
bool read_value(JsonReader& reader, AttributeValue& value);

}  // namespace sluice::dynamo
