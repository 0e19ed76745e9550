#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dynamo/client.hpp"

namespace sluice::dynamo {

/// Response bodies of DynamoDB_20120810. Pure functions. Members that we do not know are skipped.
///
/// The decoders of successful answers fail with ErrorKind::malformed_response and `outcome_unknown` set, because the
/// call did reach the server.

/// Longest body that is read: BatchGetItem's 16 MB of items, escaped.
inline constexpr std::size_t kMaxResponseBytes = 128u << 20;

/// What the units of an answer are: DynamoDB reports plain "CapacityUnits", and only the call tells which they were.
enum class Usage { read, write };

/// Query and Scan.
Result<Page> decode_page(std::string_view body);
/// GetItem ("Item"), and PutItem, UpdateItem and DeleteItem ("Attributes").
Result<ItemOutput> decode_item_output(std::string_view body, Usage usage);
/// BatchExecuteStatement of writes. Fails when the answer does not hold exactly `statements` results, for then nobody
/// could tell which is which.
Result<BatchStatementOutput> decode_batch_execute(std::string_view body, std::size_t statements);
/// DescribeTable ("Table") and CreateTable ("TableDescription").
Result<TableDescription> decode_table(std::string_view body);

/// DescribeTimeToLive. The answer to UpdateTimeToLive, which tells nothing new, has nothing of it.
Result<TimeToLive> decode_time_to_live(std::string_view body);

struct BatchGetOutput {
  std::vector<Item> items;
  std::vector<Item> unread;  ///< keys: ask again for these
  Capacity capacity;
};
/// BatchGetItem of one table.
Result<BatchGetOutput> decode_batch_get(std::string_view body);

/// What an answer other than 200 means. Never fails: a body that is not DynamoDB's, such as a proxy's page, gives a
/// readable line too. The message is one line of at most kMaxErrorText bytes.
///
/// `outcome_unknown` is set for every 5xx that is not a throttle. Kinds that the names alone do not give away:
/// `transport` for RequestTimeout (the server gave up on reading the request: no effect), `server` without
/// outcome_unknown for refusals that pass by themselves (TransactionConflict, ReplicatedWriteConflict),
/// `conditional_check_failed` for DuplicateItem and for a cancelled transaction with a failed condition.
Error decode_error(int status, const Headers& headers, std::string_view body);

/// The kind of an AWS exception name ("ThrottlingException") or of a statement's code ("ThrottlingError");
/// by `status` (0: none) when the name is not known.
ErrorKind error_kind(std::string_view name, int status);

/// Whether AWS says with this name that it knew the credentials once, or that they were replaced.
bool says_expired(std::string_view exception_name);

inline constexpr std::size_t kMaxErrorText = 1000;

/// Text of anybody's making as one line of valid UTF-8 without control characters, at most kMaxErrorText bytes.
std::string one_line(std::string_view text);

/// Whether a failure of that name (or, when it says nothing, that HTTP status) leaves open if the request took effect.
bool may_have_taken_effect(std::string_view exception_name, int status);

/// CRC-32 as zlib and DynamoDB compute it.
std::uint32_t crc32(std::string_view bytes);

/// Checks a body, as it came over the wire, against x-amz-crc32. Nothing when it fits or when there is no such header;
/// else ErrorKind::malformed_response with `outcome_unknown`, as the request did reach the server. Pure.
std::optional<Error> check_crc32(const Headers& headers, std::string_view body);

}  // namespace sluice::dynamo
