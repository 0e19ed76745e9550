#pragma once

#include <span>
#include <string>
#include <string_view>

#include "dynamo/client.hpp"

namespace sluice::dynamo {

/// Request bodies of DynamoDB_20120810. Pure functions; what is empty or absent is left out. Every data call asks for
/// the capacity it took: TOTAL, which covers table and indexes in one figure.
std::string encode(const GetItemRequest& request);
/// PutItem, UpdateItem or DeleteItem.
std::string encode(const ItemWrite& write);
std::string encode(const TransactWriteRequest& request);
std::string encode(const QueryRequest& request);
std::string encode(const ScanRequest& request);
/// On demand (PAY_PER_REQUEST), without a stream.
std::string encode(const CreateTableRequest& request);

/// BatchExecuteStatement; at most kMaxBatchStatements, and one at least.
std::string encode_batch_execute(std::span<const Statement> statements);
/// BatchGetItem of one table, consistent; at most kMaxBatchKeys.
std::string encode_batch_get(std::string_view table, std::span<const Item> keys);
/// DescribeTable and DescribeTimeToLive.
std::string encode_describe_table(std::string_view table);
std::string encode_enable_time_to_live(std::string_view table, std::string_view attribute);

}  // namespace sluice::dynamo
