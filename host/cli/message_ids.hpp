#pragma once

#include <string>
#include <vector>

#include "host/cli/arguments.hpp"
#include "host/cli/command.hpp"
#include "host/cli/exit.hpp"

namespace sluice::cli {

/// --id ID, of a command that has "id" among its positional words: it can be repeated, and the plain word says the
/// same.
Flag id_flag();

/// The ids that were given, each once and in order.
std::vector<std::string> message_ids(const Arguments& arguments);

/// The one id of a command on one message; exit 64 for none and for several.
OrExit<std::string> the_message_id(const Arguments& arguments);

}  // namespace sluice::cli
