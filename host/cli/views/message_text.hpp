#pragma once

#include <string>

#include "base/clock.hpp"
#include "host/cli/arguments.hpp"
#include "host/cli/console.hpp"
#include "host/cli/views/message_json.hpp"
#include "host/cli/views/output.hpp"
#include "host/queue/stored_message.hpp"

namespace sluice::cli {

/// Messages as rows: id, state, half, receive count, age, and why it failed last. One thread.
class MessageTable {
 public:
  explicit MessageTable(bool colours);

  void add(const queue::StoredMessage& message, WallTime now);
  /// The rows since the last time.
  std::string take() { return table_.take(); }

 private:
  TextTable table_;
};

/// One message whole: a line for each field, then the body.
std::string message_text(const queue::StoredMessage& message, WallTime now, bool colours);

/// Prints one message, as JSON or as text.
void show_message(const queue::StoredMessage& message, Output output, WallTime now, Console& console);

}  // namespace sluice::cli
