#pragma once

#include "host/cli/bulk_command.hpp"
#include "host/cli/console.hpp"
#include "host/cli/exit.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

/// Says what became of the one message that a command was to change: as text a line and the message, as JSON the
/// message as it is now, or where the command does not show it an object with its id and the result. Warns where
/// somebody was at work with it.
Exit show_changed(QueueSession& session, const BulkOrder& order, const operate::BulkOutcome& outcome, Output output,
                  Console& console);

}  // namespace sluice::cli
