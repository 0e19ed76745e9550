#pragma once

#include "base/clock.hpp"
#include "host/cli/json_text.hpp"
#include "host/queue/store.hpp"

namespace sluice::cli {

/// Writes messages as JSON objects: DynamoMQ's keys in DynamoMQ's order first, then ours. The body of an
/// application/json message stands as it is, text as a string, and what is not UTF-8 as Base64, which "data_encoding"
/// then says. Times that are not set are empty strings. Reusable.
class MessageJson {
 public:
  void write(JsonText& json, const queue::StoredMessage& message, WallTime now);

 private:
  void write_body(JsonText& json, const queue::Message& message);

  JsonChecker checker_;
};

/// "ready", "in_flight" or "delayed".
std::string_view to_string(queue::MessageState state);

}  // namespace sluice::cli
