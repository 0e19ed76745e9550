#pragma once

#include "host/cli/command.hpp"

/// The commands on tables of outboxes.
namespace sluice::cli {

Command outbox_ddl_command();
Command outbox_status_command();
Command outbox_prune_command();

}  // namespace sluice::cli
