#pragma once

#include "host/cli/command.hpp"
#include "host/cli/console.hpp"

namespace sluice::cli {

/// Whose dialogue it is.
enum class ShellStyle {
  sluice,    ///< the commands of the command line, with the queue and the selected message remembered
  dynamomq,  ///< DynamoMQ's interactive mode: its commands, prompts and texts
};

/// Reads commands until the end of input: with line editing, history and completion on a terminal, line by line
/// elsewhere. The arguments are those of a command with the store flags; what they say of the queue holds for the whole
/// dialogue. A command that fails says so and the dialogue goes on.
Exit run_interactive(const Arguments& arguments, Console& console, ShellStyle style);

}  // namespace sluice::cli
