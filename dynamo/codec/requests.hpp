#pragma once

#include <span>
#include <string>
#include <string_view>

#include "dynamo/client.hpp"

namespace sluice::dynamo {

/// Request bodies of DynamoDB_20120810. Pure functions; what is empty or absent is left out. Every data call asks for
/// the capacity it took: TOTAL, which covers table and indexes in one figure.
std::string encode(const GetItemRequest& request);
std::string encode(const PutItemRequest& request);
std::string encode(const UpdateItemRequest& request);
std::string encode(const DeleteItemRequest& request);
std::string encode(const QueryRequest& request);
std::string encode(const ScanRequest& request);
/// On demand (PAY_PER_REQUEST), without a stream.
std::string encode(const CreateTableRequest& request);

/// BatchExecuteStatement; at most kMaxBatchStatements.
std::string encode_batch_execute(std::span<const Statement> statements);
/// BatchGetItem of one table, consistent; at most kMaxBatchKeys.
std::string encode_batch_get(std::string_view table, std::span<const Item> keys);
/// BatchWriteItem of one table, puts only; at most kMaxBatchPuts.
std::string encode_batch_put(std::string_view table, std::span<const Item> items);
/// DescribeTable and DescribeTimeToLive.
std::string encode_describe_table(std::string_view table);
std::string encode_enable_time_to_live(std::string_view table, std::string_view attribute);

inline constexpr std::size_t kMaxBatchStatements = 25;
inline constexpr std::size_t kMaxBatchKeys = 100;
inline constexpr std::size_t kMaxBatchPuts = 25;

}  // namespace sluice::dynamo
