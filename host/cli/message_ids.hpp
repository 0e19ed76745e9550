#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/cli/arguments.hpp"
#include "host/cli/command.hpp"
#include "host/cli/exit.hpp"

namespace sluice::cli {

/// What a command that takes messages by their ids calls its plain words.
inline constexpr std::string_view kIdOperand = "ID";

/// --id ID, which says the same as the plain word and can be repeated.
Flag id_flag();

/// The ids that were given, each once and in order.
std::vector<std::string> message_ids(const Arguments& arguments);

/// The one id of a command on one message; exit 64 for none and for several.
OrExit<std::string> the_message_id(const Arguments& arguments);

}  // namespace sluice::cli
