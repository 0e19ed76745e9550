#pragma once

#include "host/cli/command.hpp"
#include "host/operate/message_template.hpp"

namespace sluice::cli {

/// Reads --delay, --attr, --content-type, --group, --priority and the keys of `sluice send`; exit 64 for what is wrong
/// with them.
OrExit<operate::MessageTemplate> read_template(const Arguments& arguments);

}  // namespace sluice::cli
