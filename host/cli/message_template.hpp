#pragma once

#include <string>
#include <string_view>

#include "host/cli/arguments.hpp"
#include "host/cli/exit.hpp"
#include "host/queue/message.hpp"

namespace sluice::cli {

/// What `sluice send` makes messages from: the options that every message shares, and a body for each. One thread.
class MessageTemplate {
 public:
  /// Reads --delay, --attr, --content-type, and the keys; exit 64 for what is wrong with them.
  static OrExit<MessageTemplate> from(const Arguments& arguments);

  /// A message of a JSON text: a JSON string becomes text/plain with its characters, anything else application/json as
  /// it is written. The error says what is wrong with the JSON.
  Result<queue::NewMessage> from_json(std::string_view json);
  Result<queue::NewMessage> from_text(std::string text) const;
  /// application/json when the name ends in .json and the bytes are JSON, text/plain when they are UTF-8, otherwise
  /// application/octet-stream.
  Result<queue::NewMessage> from_file(const std::string& name, std::string bytes);

 private:
  queue::NewMessage make(std::string body, std::string_view content_type) const;
  /// Its keys, where they are taken from the body. The error says what the body lacks.
  Result<queue::NewMessage> keyed(queue::NewMessage message) const;

  queue::NewMessage shared_;  ///< delay, attributes, keys
  std::string dedup_from_;    ///< a JSON pointer into the body; empty: the id is shared_'s
  std::string unique_from_;   ///< likewise
  std::string content_type_;  ///< what the sender named; empty: by the body
};

}  // namespace sluice::cli
