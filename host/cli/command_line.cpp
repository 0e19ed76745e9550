#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/assert.hpp"
#include "host/cli/command.hpp"
#include "host/cli/completion.hpp"
#include "host/cli/help.hpp"
#include "host/cli/queue_session.hpp"

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
  if (command.flag("queue") == nullptr || command.flag("outbox") == nullptr) {
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
  const Flag* const flag = command.flag("output");
  return arguments.has("output") && flag != nullptr && flag->value == "json|text";
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

/// Commands, and the heading that stands over those that have no other.
struct Family {
  std::string_view group;
  std::vector<Command> (*commands)();
};
constexpr std::array<Family, 16> kFamilies{{{"Host", host_commands},
                                            {"Host", plugin_commands},
                                            {"Fleet", fleet_commands},
                                            {"Fleet", steering_commands},
                                            {"Queues", send_commands},
                                            {"Queues", look_commands},
                                            {"Queues", count_commands},
                                            {"Queues", copy_commands},
                                            {"Queues", move_commands},
                                            {"Queues", key_commands},
                                            {"Messages", bulk_commands},
                                            {"Messages", edit_commands},
                                            {"Outboxes", outbox_commands},
                                            {"Tables", table_commands},
                                            {"Tables", table_check_commands},
                                            {"Shell", completion_commands}}};

// The host, the hosts that run, queues as a whole, outboxes, messages by their ids, tables, the shell that is typed
// into.
constexpr std::string_view kOrder =
    "run,check,plugins,crashes,health,version,hosts,jobs,running,top,pause,resume,scale,drain,reload,cancel-running,"
    "log-level,audit,cost,send,receive,peek,ls,stats,queues,dlq,purge,export,import,move,tail,keys list,keys show,"
    "keys forget,enqueue-test,shell,outbox ddl,outbox status,outbox prune,get,dry-run,fail,invalid,reset,redrive,delay,"
    "move-to-front,edit,cancel,delete,table create,table describe,table check,table policy,table shards,outbox convert,"
    "completion bash,completion zsh,completion fish,completion powershell,";

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = [] {
    std::vector<Command> found{shell_command()};
    for (const auto& [group, family] : kFamilies) {
      for (Command& command : family()) {
        command.group = command.group.empty() ? group : command.group;
        found.push_back(std::move(command));
      }
    }
    std::vector<Command> all;
    for (std::string_view rest = kOrder; !rest.empty(); rest.remove_prefix(rest.find(',') + 1)) {
      all.push_back(*find_command(found, rest.substr(0, rest.find(','))));
    }
    SLUICE_ASSERT(all.size() == found.size());
    return all;
  }();
  return kCommands;
}

const Command* find_command(const std::vector<Command>& commands, std::string_view name) {
  const auto found = std::find_if(commands.begin(), commands.end(), [name](const Command& command) {
    return command.name == name || (!name.empty() && command.alias == name);
  });
  return found == commands.end() ? nullptr : &*found;
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
