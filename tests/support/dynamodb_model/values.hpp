#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "dynamo/attribute_value.hpp"

namespace sluice::test::model {

using dynamo::AttributeValue;
using dynamo::Item;

/// Values as they come in and as DynamoDB sees them. What `read_value` gives is in one spelling (numbers canonical,
/// sets sorted), so that equality of DynamoDB's is equality of C++'s. Throws Failures.
AttributeValue read_value(const boost::json::value& json);
Item read_item(const boost::json::value& json);

/// "S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS" or "BS".
std::string_view type_of(const AttributeValue& value);
/// Of two strings, numbers or binaries; nothing when they cannot be compared.
std::optional<int> compare(const AttributeValue& a, const AttributeValue& b);
/// Bytes that sort as keys do; of S, N and B.
std::string sort_bytes(const AttributeValue& value);

/// As DynamoDB bills: names and values, three bytes a list or map and one an element.
std::size_t value_bytes(const AttributeValue& value);
std::size_t item_bytes(const Item& item);

}  // namespace sluice::test::model
