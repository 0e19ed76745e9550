#pragma once

#include <cstddef>
#include <span>

#include "base/error.hpp"
#include "dynamo/attribute_value.hpp"
#include "host/queue/operator.hpp"

/// Sets and binary values under an operator's edits. As JSON a set is an array and binary is Base64 text; what an edit
/// puts in their place stays of their type where it can.
namespace sluice::queue::dynamomq {

/// `value`, as `before` is: a set where that is one and this is an array of fitting elements, binary where that is
/// binary and this is Base64. Otherwise `value` as it is.
dynamo::AttributeValue of_the_type_of(const dynamo::AttributeValue& before, dynamo::AttributeValue value);

bool is_set(const dynamo::AttributeValue& value);

/// Replaces the element of a set, or appends it where the index is the set's size. ErrorCode::invalid, without the
/// path, for an element of another type or a place beyond the end.
Result<void> set_element(dynamo::AttributeValue& set, std::size_t index, const dynamo::AttributeValue& element);

/// ErrorCode::invalid, without the path, for the last element, since no set is empty, and for a place beyond the end.
Result<void> remove_element(dynamo::AttributeValue& set, std::size_t index);

/// Applies the edits, one after another, to the content of an item: `data` and our attributes beside it. What their
/// paths do not name keeps its type and every digit. ErrorCode::invalid, one line with the path, for the first edit
/// that leads nowhere or brings what DynamoDB cannot hold; the item is then to be thrown away. Pure.
Result<void> apply_edits(dynamo::Item& item, std::span<const ContentEdit> edits);

}  // namespace sluice::queue::dynamomq
