#pragma once

#include <span>

#include "base/error.hpp"
#include "dynamo/attribute_value.hpp"
#include "host/queue/operator.hpp"

namespace sluice::queue::dynamomq {

/// Applies the edits, one after another, to the content of an item: `data` and our attributes beside it. They are made
/// on the text that readers see, as in any store; what they leave alone keeps its type and every digit, and what they
/// put in the place of a set or of binary, which readers see as an array and as Base64 text, stays of that type where
/// it can. ErrorCode::invalid for the first edit that leads nowhere or brings what DynamoDB cannot hold; the item is
/// then to be thrown away. Pure.
Result<void> apply_edits(dynamo::Item& item, std::span<const ContentEdit> edits);

}  // namespace sluice::queue::dynamomq
