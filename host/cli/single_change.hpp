#pragma once

#include "host/cli/console.hpp"
#include "host/cli/exit.hpp"
#include "host/cli/queue_session.hpp"
#include "host/queue/change.hpp"

namespace sluice::cli {

/// The flag --id ID, required.
Flag id_flag();

/// Changes one message, and shows it afterwards where `show` says so.
enum class AfterChange { show, say_nothing };
Exit change_message(const Arguments& arguments, queue::Change change, AfterChange after, Console& console);
/// The same in a session, of the message that `change` names.
Exit apply_change(QueueSession& session, const queue::Change& change, AfterChange after, Output output,
                  Console& console);

}  // namespace sluice::cli
