#pragma once

#include "host/cli/arguments.hpp"
#include "host/cli/command.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/single_change.hpp"
#include "host/queue/change.hpp"

namespace sluice::cli {

/// The flag --force.
Flag force_flag();

/// Whether the command has the flag --force.
enum class Force { allowed, never };

/// The message of --id, to be changed if it still has its version; exit 1 when it is in flight and there is no --force.
OrExit<queue::StoredMessage> get_unclaimed(QueueSession& session, const Arguments& arguments, Force force);

/// Changes the message of --id unless somebody works on it, or changes it in between.
Exit change_unclaimed(const Arguments& arguments, queue::Change change, AfterChange after, Console& console,
                      Force force = Force::allowed);

}  // namespace sluice::cli
