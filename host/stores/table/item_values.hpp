#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.hpp"
#include "dynamo/attribute_value.hpp"

/// Reads values of items, whatever stands there, and weighs them. Pure functions.
namespace sluice::queue::table {

/// The time that an attribute spells; nothing: it spells none.
std::optional<WallTime> time_of(const dynamo::Item& item, std::string_view name);
/// A whole number of 31 bits; what is less or more counts as the least or the most, what is none as 0.
std::uint32_t count_of(const dynamo::AttributeValue* value);

/// DynamoDB's size of an item: names and values. Numbers are counted at their highest.
std::size_t item_bytes(const dynamo::Item& item);
std::size_t value_bytes(const dynamo::AttributeValue& value);

}  // namespace sluice::queue::table
