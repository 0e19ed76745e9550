#pragma once

#include "dynamo/client.hpp"
#include "host/stores/dynamomq/statements.hpp"

namespace sluice::queue::dynamomq {

/// The request that makes this write alone, under the same conditions as its statement would: PutItem, UpdateItem or
/// DeleteItem. What the statement returns comes as the answer's item.
dynamo::ItemWrite request_of(const RecordWrite& write);

}  // namespace sluice::queue::dynamomq
