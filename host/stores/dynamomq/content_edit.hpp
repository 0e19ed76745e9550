#pragma once

#include <span>

#include "base/error.hpp"
#include "dynamo/attribute_value.hpp"
#include "host/queue/operator.hpp"

/// Sets and binary values under an operator's edits. As JSON a set is an array and binary is Base64 text; what an edit
/// puts in their place stays of their type where it can.
namespace sluice::queue::dynamomq {

/// Applies the edits, one after another, to the content of an item: `data` and our attributes beside it. What their
/// paths do not name keeps its type and every digit. ErrorCode::invalid, one line with the path, for the first edit
/// that leads nowhere or brings what DynamoDB cannot hold; the item is then to be thrown away. Pure.
Result<void> apply_edits(dynamo::Item& item, std::span<const ContentEdit> edits);

}  // namespace sluice::queue::dynamomq
