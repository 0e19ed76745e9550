#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/cli/command.hpp"
#include "host/cli/console.hpp"

/// The program under the name `dynamomq`: DynamoMQ's commands with its flags, shapes, texts and exit codes.
///
/// The table is --table-name, as there. A host file counts only when it is named, by SLUICE_CONFIG or by --config
/// (which DynamoMQ does not have): one that merely lies about must not change what a script means.
namespace sluice::cli {

/// True when the program was called by that name; `program` is argv[0].
bool is_drop_in(std::string_view program);

/// DynamoMQ's commands, in the order of its help.
const std::vector<Command>& drop_in_commands();

/// Runs one, or the interactive mode when none is named. Exit code 0 or 1; and 141 when nobody reads the output.
int run_drop_in(const std::vector<std::string>& words, Console& console);

/// What a run got from its words, read as DynamoMQ reads them: flags before and behind the command, of one given twice
/// the last. `error` is empty when all is well.
struct DropInWords {
  const Command* command = nullptr;  ///< null: the program itself
  Arguments arguments;               ///< its plain words are those after the command
  bool wants_help = false;
  std::string error;
  bool unknown_command = false;
};
DropInWords parse_drop_in(const std::vector<std::string>& words);

/// Usage and flags of a command, or of the program when it is null.
std::string drop_in_usage(const Command* command);
/// The same with what it does before it.
std::string drop_in_help(const Command* command);

}  // namespace sluice::cli
