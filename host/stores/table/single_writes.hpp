#pragma once

#include "dynamo/client.hpp"
#include "dynamo/transaction.hpp"
#include "host/stores/table/statements.hpp"

namespace sluice::queue::table {

/// The request that makes this write alone, under the same conditions as its statement would: PutItem, UpdateItem or
/// DeleteItem. What the statement returns comes as the answer's item.
dynamo::ItemWrite request_of(const RecordWrite& write);

/// The same as one action of a transaction.
dynamo::TransactAction action_of(const RecordWrite& write);
dynamo::TransactAction action_of(dynamo::ItemWrite request);

}  // namespace sluice::queue::table
