#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/text/json_writer.hpp"
#include "host/queue/stored_message.hpp"

namespace sluice::cli {

/// Which members a JSON object of a message has.
enum class Keys {
  all,       ///< DynamoMQ's in DynamoMQ's order, then ours
  dynamomq,  ///< DynamoMQ's alone, its times without trailing zeros as Go writes them
};

/// Writes messages as JSON objects. The body of an application/json message stands as it is, text as a string, and what
/// is not UTF-8 as Base64, which "data_encoding" then says. Times that are not set are empty strings. Reusable.
class MessageJson {
 public:
  explicit MessageJson(Keys keys = Keys::all) : keys_(keys) {}

  void write(JsonWriter& json, const queue::StoredMessage& message, WallTime now);
  /// What a list shows of it: id and queue type, and DynamoMQ's status or our state, counts, and why it failed.
  void write_status(JsonWriter& json, const queue::StoredMessage& message, WallTime now) const;
  /// DynamoMQ's "system info": its keys but the body, and the status after the id.
  void write_system_info(JsonWriter& json, const queue::StoredMessage& message, WallTime now) const;
  /// The body alone, as a value.
  void write_data(JsonWriter& json, const queue::Message& message);

 private:
  void write_body(JsonWriter& json, const queue::Message& message);
  void write_record(JsonWriter& json, const queue::StoredMessage& message) const;
  /// As the record has it, where that is no time.
  void write_time(JsonWriter& json, const queue::StoredMessage& stored, std::string_view name,
                  const std::optional<WallTime>& time) const;

  const Keys keys_;
};

/// "STANDARD" or "DLQ"; for a record that names neither what it names, or nothing.
std::string half_text(const queue::StoredMessage& message);

/// "READY" or "PROCESSING", DynamoMQ's names; a message that waits for its time is the latter.
std::string_view dynamomq_status(const queue::StoredMessage& message, WallTime now);

/// Valid JSON with the members of every object in the order of their keys' bytes, as Go writes maps; of a key given
/// twice the last. Compact; every digit of its numbers stays, and strings are spelled as `JsonWriter` spells them.
std::string with_sorted_keys(std::string_view json);

/// JSON text with what Go's encoder escapes beside the necessary: < > & and the line separators U+2028 and U+2029.
std::string escaped_as_go_does(std::string_view json);

}  // namespace sluice::cli
