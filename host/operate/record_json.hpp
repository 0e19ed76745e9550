#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/text/json_writer.hpp"
#include "host/queue/stored_message.hpp"

/// Records as JSON. Pure functions.
namespace sluice::operate {

/// How often it was handed out, as people are told. A dead letter's own count is of its time as one; what it came to
/// before stands in its failure.
inline std::uint64_t receives_of(const queue::StoredMessage& stored) {
  const std::uint64_t received = stored.message.attempt;
  return stored.half == queue::Half::dlq ? std::max<std::uint64_t>(received, stored.failure.attempts) : received;
}

/// The members of a message's JSON, as people and their programs see it: DynamoMQ's keys in DynamoMQ's order, then
/// ours. The body of an application/json message stands as it is, text as a string, and what is not UTF-8 as Base64,
/// which "data_encoding" then says. Times that are not set are empty strings.
void write_members(JsonWriter& json, const queue::StoredMessage& record, WallTime now);
/// Of those, in a list: since when and until when it waits, and why it failed.
void write_last_members(JsonWriter& json, const queue::StoredMessage& record);

/// Appends a record as one line, its line break included: DynamoMQ's keys in DynamoMQ's order, then ours, then "item",
/// the record as DynamoDB JSON, where the record brings it. A body of application/json stands as it is and any other
/// one is a string; "data_encoding" tells of the exceptions: "text" for JSON that cannot stand in one line unchanged,
/// and "base64" for what is not UTF-8. Any other string that is not UTF-8 is the object {"base64": "..."}.
void append_record_line(std::string& out, const queue::StoredMessage& record);

/// The most that such a line has: a body of 16 MiB, which is the most that a store takes, with every byte escaped, and
/// the rest of its record.
inline constexpr std::size_t kMaxRecordLine = 128UL * 1024 * 1024;

/// Reads what `append_record_line` wrote; white space is free. ErrorCode::invalid with the column for anything else: no
/// JSON, a key that is missing, given twice or unknown, a value of another type or out of range.
Result<queue::StoredMessage> parse_record_line(std::string_view line);

}  // namespace sluice::operate
