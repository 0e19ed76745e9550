#pragma once

#include "base/error.hpp"
#include "dynamo/attribute_value.hpp"
#include "host/queue/message.hpp"

/// A message's attributes as items hold them: a map of texts, the same in every layout. Pure functions.
namespace sluice::queue::table {

/// ErrorCode::invalid for a name or a value that is not UTF-8.
Result<dynamo::Map> encode_attributes(const Attributes& attributes);

/// What of an attribute's value is text; none where it is no map, or where there is no value. Never fails.
Attributes decode_attributes(const dynamo::AttributeValue* value);

}  // namespace sluice::queue::table
