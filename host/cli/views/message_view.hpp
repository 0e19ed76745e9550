#pragma once

#include <string>

#include "base/clock.hpp"
#include "host/cli/bulk_command.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/operate/message_report.hpp"

namespace sluice::cli {

/// One message whole: a line for each field, then the body.
std::string message_text(const queue::StoredMessage& message, WallTime now, bool colours);

/// Prints one message, as JSON or as text.
void show_message(const queue::StoredMessage& message, Output output, WallTime now, Console& console);

/// Says what became of the one message that a command was to change: as text a line and the message, as JSON the
/// message as it is now, or where the command does not show it an object with its id and the result. Warns where
/// somebody was at work with it.
Exit show_changed(QueueSession& session, const BulkOrder& order, const operate::BulkOutcome& outcome, Output output,
                  Console& console);

}  // namespace sluice::cli
