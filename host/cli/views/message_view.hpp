#pragma once

#include <string>

#include "base/clock.hpp"
#include "host/cli/views/output.hpp"
#include "host/operate/message_report.hpp"

namespace sluice::cli {

/// One message whole: a line for each field, then the body.
std::string message_text(const queue::StoredMessage& message, WallTime now, bool colours);

/// Prints one message, as JSON or as text.
void show_message(const queue::StoredMessage& message, Output output, WallTime now, Console& console);

}  // namespace sluice::cli
