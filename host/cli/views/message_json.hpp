#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "host/cli/views/json_text.hpp"
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

  void write(JsonText& json, const queue::StoredMessage& message, WallTime now);
  /// What a list shows of it: id and queue type, and DynamoMQ's status or our state, counts, and why it failed.
  void write_status(JsonText& json, const queue::StoredMessage& message, WallTime now) const;
  /// DynamoMQ's "system info": its keys but the body, and the status after the id.
  void write_system_info(JsonText& json, const queue::StoredMessage& message, WallTime now) const;
  /// The body alone, as a value.
  void write_data(JsonText& json, const queue::Message& message);

 private:
  void write_body(JsonText& json, const queue::Message& message);
  void write_record(JsonText& json, const queue::StoredMessage& message) const;
  /// As the record has it, where that is no time.
  void write_time(JsonText& json, const queue::StoredMessage& stored, std::string_view name,
                  const std::optional<WallTime>& time) const;

  const Keys keys_;
};

/// "STANDARD" or "DLQ"; for a record that names neither what it names, or nothing.
std::string half_text(const queue::StoredMessage& message);

/// "READY" or "PROCESSING", DynamoMQ's names; a message that waits for its time is the latter.
std::string_view dynamomq_status(const queue::StoredMessage& message, WallTime now);

}  // namespace sluice::cli
