#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "host/queue/stored_message.hpp"

/// Records as lines of JSON, for copies of a queue. Pure functions; nothing of a record is lost on the way there and
/// back.
namespace sluice::operate {

/// Deepest JSON that a line carries as JSON; a body that is nested deeper goes as text.
inline constexpr std::size_t kMaxRecordDepth = 256;

/// Appends a record as one line, its line break included: DynamoMQ's keys in DynamoMQ's order, then ours, then "item",
/// the record as DynamoDB JSON, where the record brings it. A body of application/json stands as it is and any other
/// one is a string; "data_encoding" tells of the exceptions: "text" for JSON that cannot stand in one line unchanged,
/// and "base64" for what is not UTF-8. Any other string that is not UTF-8 is the object {"base64": "..."}.
void append_record_line(std::string& out, const queue::StoredMessage& record);

/// Reads what `append_record_line` wrote; white space is free. ErrorCode::invalid with the column for anything else: no
/// JSON, a key that is missing, given twice or unknown, a value of another type or out of range.
Result<queue::StoredMessage> parse_record_line(std::string_view line);

}  // namespace sluice::operate
