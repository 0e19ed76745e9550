#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/cli/arguments.hpp"
#include "host/cli/console.hpp"
#include "host/cli/exit.hpp"

namespace sluice::cli {

/// One option of a command, as its parser and its help need it.
struct Flag {
  std::string_view name{};   ///< without the dashes
  std::string_view value{};  ///< what its help calls the value, such as "QUEUE"; empty: a switch
  std::string_view help{};
  bool required = false;
  bool repeated = false;
  bool common = false;       ///< one of those that say where the queue is; listed under a heading of their own
  std::string_view alias{};  ///< another name, accepted and not shown
};

/// One command. `sluice table create` is a command with a name of two words.
struct Command {
  std::string_view name{};
  std::string_view alias{};        ///< another name for it
  std::string_view group{};        ///< its heading in `sluice help`
  std::string_view summary{};      ///< one line of `sluice help`
  std::string_view usage{};        ///< what follows the name in the usage line
  std::string_view description{};  ///< paragraphs of `sluice help NAME`, separated by empty lines
  std::vector<Flag> flags{};
  /// Options whose value may stand alone, in this order: `sluice scale mailer 16` is --job mailer --workers 16. One
  /// that can be repeated takes every word from its place on: `sluice delete A-1 A-2`.
  std::vector<std::string_view> positional{};
  std::string_view examples{};  ///< lines, indented by the help
  bool stdin_operand = false;   ///< takes "-" beside its options
  Exit (*run)(const Arguments& arguments, Console& console) = nullptr;
};

/// All of them, in the order of `sluice help`.
const std::vector<Command>& commands();

/// The command of that name or alias; null when there is none.
const Command* find_command(std::string_view name);

/// Runs the command that the arguments name and says on stderr why it failed. Returns the process's exit code.
int run_command_line(const std::vector<std::string>& words, Console& console);

// One for each command, each in the file of its name.
Command run_command();
Command check_command();
Command plugins_command();
Command crashes_command();
Command health_command();
Command version_command();
Command hosts_command();
Command jobs_command();
Command running_command();
Command top_command();
Command pause_command();
Command resume_command();
Command scale_command();
Command drain_command();
Command reload_command();
Command cancel_running_command();
Command log_level_command();
Command audit_command();
Command cost_command();
Command table_create_command();
Command table_describe_command();
Command table_check_command();
Command table_policy_command();
Command table_shards_command();
Command outbox_convert_command();
Command send_command();
Command export_command();
Command import_command();
Command move_command();
Command tail_command();
Command get_command();
Command ls_command();
Command stats_command();
Command queues_command();
Command purge_command();
Command move_to_front_command();
Command cancel_command();
Command delay_command();
Command edit_command();
Command delete_command();
Command dry_run_command();
Command redrive_command();
Command peek_command();
Command receive_command();
Command fail_command();
Command invalid_command();
Command reset_command();
Command dlq_command();
Command keys_list_command();
Command keys_show_command();
Command keys_forget_command();
Command enqueue_test_command();
Command shell_command();
Command completion_bash_command();
Command completion_zsh_command();
Command completion_fish_command();
Command completion_powershell_command();

}  // namespace sluice::cli
