#pragma once

#include <string_view>

#include "dynamo/attribute_value.hpp"
#include "host/queue/message.hpp"

/// What is kept with a message of its failed attempts: a map, the same in every layout. Pure functions.
namespace sluice::queue::table {

/// A failure as the record keeps it, its text cut to kMaxFailureBytes.
dynamo::AttributeValue encode_failure(const Failure& failure);

/// What an attribute's value says; empty where it says none, or where there is no value. Never fails.
Failure decode_failure(const dynamo::AttributeValue* value);

}  // namespace sluice::queue::table
