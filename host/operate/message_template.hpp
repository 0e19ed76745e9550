#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "host/queue/message.hpp"

namespace sluice::operate {

/// What messages are made from: what all of them share, and a body for each. A value.
struct MessageTemplate {
  queue::NewMessage shared{};  ///< delay, attributes, keys
  std::string dedup_from{};    ///< a JSON pointer into the body; empty: the id is shared's
  std::string unique_from{};   ///< likewise
  std::string content_type{};  ///< what the sender named; empty: by the body

  /// A message of a JSON text: a JSON string becomes text/plain with its characters, anything else application/json as
  /// it is written. The error says what is wrong with the JSON.
  Result<queue::NewMessage> from_json(std::string_view json) const;
  Result<queue::NewMessage> from_text(std::string text) const;
  /// application/json when the name ends in .json and the bytes are JSON, text/plain when they are UTF-8, otherwise
  /// application/octet-stream.
  Result<queue::NewMessage> from_file(const std::string& name, std::string bytes) const;

 private:
  queue::NewMessage make(std::string body, std::string_view by_body) const;
  /// Its keys, where they are taken from the body. The error says what the body lacks.
  Result<queue::NewMessage> keyed(queue::NewMessage message) const;
};

}  // namespace sluice::operate
