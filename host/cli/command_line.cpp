#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/cli/command.hpp"
#include "host/cli/commands/outbox.hpp"
#include "host/cli/filters_help.hpp"
#include "host/cli/help.hpp"
#include "host/cli/queue_names.hpp"
#include "host/cli/share_files.hpp"
#include "host/cli/suggestions.hpp"

namespace sluice::cli {

namespace {

using Words = std::vector<std::string>;

bool is_family(const std::string& word) {
  const std::string prefix = word + " ";
  return std::any_of(commands().begin(), commands().end(),
                     [&prefix](const Command& command) { return command.name.substr(0, prefix.size()) == prefix; });
}

Exit unknown_command(const std::string& name) {
  Words known{"help"};
  for (const Command& command : commands()) {
    known.emplace_back(command.name);
    known.emplace_back(command.name.substr(0, command.name.find(' ')));
    if (!command.alias.empty()) {
      known.emplace_back(command.alias);
    }
  }
  const auto meant = nearest_word(name, known);
  return Exit::usage("unknown command \"" + name + "\"; " +
                     (meant ? "did you mean `sluice " + *meant + "`?" : "`sluice help` lists them"));
}

/// Takes a command's name, of one word or two, off the front of the words.
OrExit<const Command*> take_command(Words& words) {
  const std::string first = words.front();
  if (const Command* command = find_command(first)) {
    words.erase(words.begin());
    return command;
  }
  if (!is_family(first)) {
    return unknown_command(first);
  }
  if (words.size() < 2) {
    return Exit::usage("\"" + first + "\" needs a command after it; `sluice help " + first + "` lists them");
  }
  const std::string both = first + " " + words[1];
  const Command* command = find_command(both);
  if (command == nullptr) {
    return unknown_command(both);
  }
  words.erase(words.begin(), words.begin() + 2);
  return command;
}

/// For a command on a queue, `--outbox NAME` is another way to write `--queue outbox:NAME`.
Words with_outbox_as_queue(const Command& command, Words words) {
  const auto has = [&command](std::string_view name) {
    return std::any_of(command.flags.begin(), command.flags.end(), [&](const Flag& flag) { return flag.name == name; });
  };
  if (!has("queue") || !has("outbox")) {
    return words;
  }
  const std::string option = "--outbox";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == option && i + 1 < words.size()) {
      words[i] = "--queue";
      words[i + 1] = "outbox:" + words[i + 1];
      ++i;
    } else if (words[i].starts_with(option + "=")) {
      words[i] = "--queue=outbox:" + words[i].substr(option.size() + 1);
    }
  }
  return words;
}

Exit help(Words words, Console& console) {
  const bool about_itself =
      words.size() == 1 && (words.front() == "help" || words.front() == "--help" || words.front() == "-h");
  if (words.empty() || about_itself) {
    console.out(general_help());
    return Exit::ok();
  }
  if (words.size() == 1 && words.front() == kFiltersTopic) {
    console.out(filters_help());
    return Exit::ok();
  }
  if (words.size() == 1 && is_family(words.front())) {
    console.out(family_help(words.front()));
    return Exit::ok();
  }
  SLUICE_TRY(command, take_command(words));
  if (!words.empty()) {
    return Exit::usage("unexpected word \"" + words.front() + "\"; write `sluice help " +
                       std::string((*command)->name) + "`");
  }
  console.out(command_help(**command));
  return Exit::ok();
}

/// True when --output was given and says how to show something; of a few commands it says where to write.
bool chooses_output(const Command& command, const Arguments& arguments) {
  return arguments.has("output") && std::any_of(command.flags.begin(), command.flags.end(), [](const Flag& flag) {
           return flag.name == "output" && flag.value == "json|text";
         });
}

Exit dispatch(Words words, Console& console, std::string& name) {
  if (words.empty()) {
    return Exit::usage("no command; `sluice help` lists them");
  }
  const std::string first = words.front();
  if (first == "help" || first == "--help" || first == "-h") {
    words.erase(words.begin());
    return help(words, console);
  }
  if (first == "__complete") {
    words.erase(words.begin());
    console.out(suggest(commands(), words).lines());
    return Exit::ok();
  }
  if (first == kShareFilesWord && words.size() == 2) {
    return write_share_files(words[1]);
  }
  if (first == "--version") {
    words.front() = "version";
  } else if (first.front() == '-') {
    return Exit::usage("an option stands where the command should: " + first + "; write `sluice COMMAND " + first +
                       " ...`");
  }
  const bool family_asks = words.size() == 2 && is_family(first) && (words[1] == "--help" || words[1] == "-h");
  if (family_asks) {
    return help({first}, console);
  }
  SLUICE_TRY(command, take_command(words));
  name = (*command)->name;
  SLUICE_TRY(arguments, Arguments::parse(**command, with_outbox_as_queue(**command, words)));
  if (arguments->wants_help()) {
    console.out(command_help(**command));
    return Exit::ok();
  }
  if (const auto output = arguments->output(); chooses_output(**command, *arguments) && output.has_error()) {
    return output.error();
  }
  if (const auto hint = name == "send" ? std::nullopt : misspelt_queue(*arguments)) {
    console.note("sluice " + name + ": " + *hint);
  }
  return (*command)->run(*arguments, console);
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands{
      // The host.
      run_command(),
      check_command(),
      plugins_command(),
      crashes_command(),
      health_command(),
      version_command(),
      // The hosts that run.
      hosts_command(),
      jobs_command(),
      running_command(),
      top_command(),
      pause_command(),
      resume_command(),
      scale_command(),
      drain_command(),
      reload_command(),
      cancel_running_command(),
      log_level_command(),
      audit_command(),
      cost_command(),
      // Queues as a whole.
      send_command(),
      receive_command(),
      peek_command(),
      ls_command(),
      stats_command(),
      queues_command(),
      dlq_command(),
      purge_command(),
      export_command(),
      import_command(),
      move_command(),
      tail_command(),
      keys_list_command(),
      keys_show_command(),
      keys_forget_command(),
      enqueue_test_command(),
      shell_command(),
      // Outboxes.
      outbox_ddl_command(),
      outbox_status_command(),
      outbox_prune_command(),
      // Messages by their ids.
      get_command(),
      dry_run_command(),
      fail_command(),
      invalid_command(),
      reset_command(),
      redrive_command(),
      delay_command(),
      move_to_front_command(),
      edit_command(),
      cancel_command(),
      delete_command(),
      // Tables.
      table_create_command(),
      table_describe_command(),
      table_check_command(),
      table_policy_command(),
      table_shards_command(),
      // Outboxes.
      outbox_convert_command(),
      // The shell that is typed into.
      completion_bash_command(),
      completion_zsh_command(),
      completion_fish_command(),
      completion_powershell_command(),
  };
  return kCommands;
}

const Command* find_command(std::string_view name) {
  const auto found = std::find_if(commands().begin(), commands().end(), [name](const Command& command) {
    return command.name == name || (!name.empty() && command.alias == name);
  });
  return found == commands().end() ? nullptr : &*found;
}

int run_command_line(const std::vector<std::string>& words, Console& console) {
  std::string name;
  const Exit end = dispatch(words, console, name);
  console.flush();
  console.end_progress();
  const std::string prefix = name.empty() ? "sluice: " : "sluice " + name + ": ";
  if (console.output_failure() == EPIPE) {
    return kExitBrokenPipe;  // the reader has what it wanted
  }
  for (const std::string& line : end.lines()) {
    console.note(prefix + line);
  }
  if (console.output_failure() != 0) {
    console.note(prefix + "cannot write to standard output: " + std::strerror(console.output_failure()));
    return end.code() == kExitOk ? kExitFailure : end.code();
  }
  return end.code();
}

}  // namespace sluice::cli
