#pragma once

#include <string>
#include <string_view>

#include "host/cli/command.hpp"

namespace sluice::cli {

/// `sluice help`.
std::string general_help();

/// What `sluice help` says below its list of commands: where the host file is, and the exit codes.
std::string_view general_notes();

/// `sluice help NAME`: summary, usage, options, examples; lines of at most 80 columns.
std::string command_help(const Command& command);

/// `sluice help table`: the commands whose names begin with that word.
std::string family_help(std::string_view first_word);

}  // namespace sluice::cli
