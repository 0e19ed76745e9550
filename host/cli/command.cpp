#include "host/cli/command.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/assert.hpp"
#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "base/text/number.hpp"
#include "host/cli/help.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/words.hpp"

namespace sluice::cli {

namespace {

using Words = std::vector<std::string>;

constexpr const char* kOutputVariable = "SLUICE_OUTPUT";

/// An option, or a word that stands alone.
struct Token {
  std::string name;            ///< as it was typed, without dashes; empty: a word
  const Flag* flag = nullptr;  ///< null for a word, for --help and for an option that there is not
  std::string value{};         ///< empty where it is missing
  bool awaits = false;         ///< the value would be the next word
};

std::string see_help(const Command& command) { return "`sluice help " + std::string(command.name) + "` lists them"; }

Exit unknown_option(const Command& command, const std::string& word) {
  const bool is_long = word.starts_with("--");
  const std::string name = word.substr(is_long ? 2 : 1, word.find('=') - (is_long ? 2 : 1));
  std::vector<std::string> known{"help"};
  for (const Flag& flag : command.flags) {
    known.emplace_back(flag.name);
  }
  const auto meant = nearest_word(name, known);
  return Exit::usage("unknown option " + (is_long ? "--" + name : word) + "; " +
                     (meant ? "did you mean --" + *meant + "?" : see_help(command)));
}

Exit needs_value(const Flag& flag) {
  const std::string name(flag.name);
  return Exit::usage("--" + name + " needs a value: --" + name + " " + std::string(flag.value));
}

bool is_help_option(const std::string& word) { return word == "--help" || word == "-h"; }

/// True for "--queue --yes", where a value was forgotten; "--queue=--yes" means it.
bool is_option(const Command& command, const std::string& value) {
  return is_help_option(value) ||
         (value.starts_with("--") && command.flag(value.substr(2, value.find('=') - 2)) != nullptr);
}

/// The option that begins at a word, with the next one where that is its value. `wrong`: as Arguments::read.
Token option_at(const Command& command, std::span<const std::string> words, std::size_t& at, std::vector<Exit>& wrong) {
  const std::string& word = words[at];
  if (word == "-h") {
    return {"help"};
  }
  const auto equals = word.find('=');
  const bool adjacent = equals != std::string::npos;
  Token token{word.starts_with("--") ? word.substr(2, equals - 2) : word};
  token.flag = command.flag(token.name);
  const bool takes_value = token.flag != nullptr && !token.flag->value.empty();
  token.awaits = takes_value && !adjacent && at + 1 == words.size();
  token.value = adjacent ? word.substr(equals + 1) : std::string();
  if (token.flag == nullptr && token.name != "help") {
    wrong.push_back(unknown_option(command, word));
  } else if (!takes_value && adjacent) {
    wrong.push_back(Exit::usage("--" + token.name + " takes no value; write it without '='"));
  } else if (takes_value && (adjacent ? token.value.empty() : token.awaits || is_option(command, words[at + 1]))) {
    wrong.push_back(needs_value(*token.flag));
  } else if (takes_value && !adjacent) {
    token.value = words[++at];
  }
  return token;
}

std::vector<Token> tokens_of(const Command& command, std::span<const std::string> words, std::vector<Exit>& wrong) {
  std::vector<Token> tokens;
  bool options = true;
  for (std::size_t at = 0; at < words.size(); ++at) {
    if (options && words[at] == "--") {
      options = false;
    } else if (!options || words[at].size() < 2 || words[at].front() != '-') {
      tokens.push_back({{}, nullptr, words[at]});
    } else {
      tokens.push_back(option_at(command, words, at, wrong));
    }
  }
  return tokens;
}

/// "--job is missing; write --job JOB", and the short form where the value may stand alone.
Exit missing(const Command& command, const Flag& flag, bool empty) {
  std::string alone;
  if (flag.alone) {
    alone = "`sluice " + std::string(command.name);
    for (const Flag& operand : command.flags) {
      alone += operand.alone ? " " + std::string(operand.value) : "";
    }
    alone += "` or ";
  }
  const std::string name(flag.name);
  return Exit::usage("--" + name + (empty ? " is empty" : " is missing") + "; write " + alone + "--" + name + " " +
                     std::string(flag.value));
}

bool is_family(const std::string& word) {
  const std::string prefix = word + " ";
  return std::any_of(commands().begin(), commands().end(),
                     [&prefix](const Command& command) { return command.name.substr(0, prefix.size()) == prefix; });
}

/// `family`: whose second word it is; empty: it is the first word.
Exit unknown_command(const std::string& name, const std::string& family) {
  Words known;
  for (const Command& command : commands()) {
    known.emplace_back(command.name);
    if (family.empty()) {
      known.emplace_back(command.name.substr(0, command.name.find(' ')));
      known.emplace_back(command.alias.empty() ? "help" : command.alias);
    }
  }
  const auto meant = nearest_word(name, known);
  return Exit::usage("unknown command \"" + name + "\"; " +
                     (meant ? "did you mean `sluice " + *meant + "`?"
                            : "`sluice help" + (family.empty() ? "" : " " + family) + "` lists them"));
}

/// Takes a command's name, of one word or two, off the front of the words.
OrExit<const Command*> take_command(Words& words) {
  if (const Command* command = find_command(commands(), words)) {
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(command->name_words()));
    return command;
  }
  const std::string& first = words.front();
  if (!is_family(first)) {
    return unknown_command(first, {});
  }
  return words.size() < 2
             ? Exit::usage("\"" + first + "\" needs a command after it; `sluice help " + first + "` lists them")
             : unknown_command(first + " " + words[1], first);
}

/// Whether the line of a command that takes ids or a key as plain words begins with the name of its queue.
/// `remembered`: a shell knows one otherwise.
OrExit<bool> begins_with_queue(const Arguments& line, bool remembered) {
  const Command& command = *line.command();
  if (command.flag("queue") == nullptr || !queue_stands_first(command.flags) || line.plain().empty() ||
      line.has("queue") || line.has("table") || line.wants_help()) {
    return false;
  }
  // Of a command that wants one id or key, a word that stands alone is that, and so is one of a message in a file.
  const bool may_be_own =
      remembered || line.has("file") || (next_operand(command, Arguments())->required && line.plain().size() == 1);
  return names_queue(line, may_be_own);
}

/// True when its --output says how to show something; of a few commands it says where to write.
bool has_output_flag(const Command& command) {
  const Flag* const flag = command.flag("output");
  return flag != nullptr && flag->value == "json|text";
}

/// What `sluice help` says of a topic, or of itself.
OrExit<std::string> help_on(Words words) {
  const bool about_itself = words.size() == 1 && (words.front() == "help" || is_help_option(words.front()));
  if (words.empty() || about_itself) {
    return general_help();
  }
  if (words.size() == 1 && words.front() == kFiltersTopic) {
    return std::string(filters_help());
  }
  if (words.size() == 1 && is_family(words.front())) {
    return family_help(words.front());
  }
  SLUICE_TRY(command, take_command(words));
  if (!words.empty()) {
    return Exit::usage("unexpected word \"" + words.front() + "\"; write `sluice help " +
                       std::string((*command)->name) + "`");
  }
  return command_help(**command);
}

Exit dispatch(Words words, Console& console, const RememberedOptions& remembered, std::string& name) {
  if (words.empty()) {
    return Exit::usage("no command; `sluice help` lists them");
  }
  const std::string first = words.front();
  const Words others(words.begin() + 1, words.end());
  if (first == "help" || is_help_option(first)) {
    SLUICE_TRY(text, help_on(others));
    return print(*text, console);
  }
  if (first == "__complete") {
    return print(suggest(commands(), others).lines(), console);
  }
  if (first == kShareFilesWord && words.size() == 2) {
    return write_share_files(words[1]);
  }
  if (first == "--version") {
    words.front() = "version";
  } else if (first.starts_with('-')) {
    return Exit::usage("an option stands where the command should: " + first + "; write `sluice COMMAND " + first +
                       " ...`");
  }
  if (words.size() == 2 && is_family(first) && is_help_option(words[1])) {
    return print(family_help(first), console);
  }
  SLUICE_TRY(command, take_command(words));
  name = (*command)->name;
  Arguments line = Arguments::of_line(**command, words);
  RememberedOptions unsaid = line.unsaid(remembered);
  auto queue = unsaid.extract("queue");
  line.add(unsaid);
  SLUICE_TRY(queue_first, begins_with_queue(line, !queue.empty()));
  if (!*queue_first) {
    unsaid.insert(std::move(queue));
  }
  SLUICE_TRY(arguments, Arguments::parse(**command, words, *queue_first, unsaid));
  if (arguments->wants_help()) {
    return print(command_help(**command), console);
  }
  if (has_output_flag(**command)) {
    SLUICE_TRY(output, arguments->output((*command)->elsewhere));
    console.show_as(*output);
  }
  console.show_wide(arguments->has("wide"));
  return (*command)->run(*arguments, console);
}

// Each in a file of its own.
constexpr std::array kFamilies{
    host_commands,     plugin_commands, new_commands,       dev_commands,      try_commands,  plugin_file_commands,
    validate_commands, fleet_commands,  top_commands,       steering_commands, send_commands, look_commands,
    count_commands,    copy_commands,   move_commands,      key_commands,      bulk_commands, edit_commands,
    outbox_commands,   table_commands,  completion_commands};

/// A heading of `sluice help`, and the names of its commands in order.
struct Group {
  std::string_view heading;
  std::string_view names;
};
constexpr std::array<Group, 8> kGroups{
    {{"Host", "run,check,crashes,health,version"},
     {"Plugins", "new plugin,dev,try,replay,plugins,plugin inspect,plugin validate"},
     {"Fleet", "hosts,jobs,running,top,pause,resume,scale,drain,reload,cancel-running,log-level,audit,cost"},
     {"Queues",
      "send,receive,peek,ls,stats,queues,dlq,purge,export,import,move,tail,keys list,keys show,keys forget,"
      "enqueue-test,shell"},
     {"Outboxes", "outbox ddl,outbox status,outbox prune,outbox convert"},
     {"Messages", "get,dry-run,fail,invalid,reset,redrive,delay,move-to-front,edit,cancel,delete"},
     {"Tables", "table create,table describe,table check,table policy,table shards"},
     {"Shell", "completion bash,completion zsh,completion fish,completion powershell"}}};

}  // namespace

Exit::Exit(const std::vector<config::ConfigError>& errors, int code) : code_(code) {
  for (const config::ConfigError& error : errors) {
    lines_.push_back(error.text());
  }
}

const Flag* Command::flag(std::string_view word) const {
  return find_where(flags, [word](const Flag& flag) { return flag.is_called(word); });
}

const Flag* next_operand(const Command& command, const Arguments& given) {
  return find_where(command.flags,
                    [&given](const Flag& flag) { return flag.alone && (flag.repeated || !given.has(flag.name)); });
}

Arguments Arguments::read(const Command& command, std::span<const std::string> words, bool queue_first,
                          std::vector<Exit>& wrong) {
  Arguments arguments;
  arguments.command_ = &command;
  std::map<std::string, std::vector<std::string>> alone;
  const auto put = [&](const std::string& typed, const Flag& flag, std::string value) {
    auto& values = arguments.values_[std::string(flag.name)];
    if (!values.empty() && !flag.repeated) {
      wrong.push_back(Exit::usage("--" + typed + " is given twice; give it once"));
    }
    values.push_back(std::move(value));
  };
  for (Token& token : tokens_of(command, words, wrong)) {
    arguments.awaited_ = token.awaits ? token.flag : nullptr;
    if (token.name == "help") {
      arguments.help_ = true;
    } else if (token.flag != nullptr) {
      const Flag* const queue = command.flag("queue");
      if (queue != nullptr && token.flag->name == "outbox" && !arguments.has("outbox")) {
        put("queue", *queue, "outbox:" + token.value);  // is another way to write it
      }
      put(token.name, *token.flag, std::move(token.value));
    } else if (!token.name.empty()) {
      continue;  // no option of the command
    } else if (command.stdin_operand && token.value == "-" && !arguments.stdin_) {
      arguments.stdin_ = true;
    } else if (std::exchange(queue_first, false)) {
      put("queue", *command.flag("queue"), std::move(token.value));
    } else if (const Flag* operand = next_operand(command, arguments)) {
      if (operand->repeated && token.value.empty()) {
        wrong.push_back(Exit::usage("an empty word stands where " + std::string(operand->value) + " should"));
      }
      const std::string name(operand->name);
      arguments.plain_.insert(name);
      arguments.words_.push_back(token.value);
      (operand->repeated ? alone[name] : arguments.values_[name]).push_back(std::move(token.value));
    } else {
      wrong.push_back(Exit::usage("unexpected word \"" + token.value + "\"; `sluice help " + std::string(command.name) +
                                  "` shows what it takes"));
      arguments.words_.push_back(std::move(token.value));
    }
  }
  for (auto& [name, words_alone] : alone) {
    auto& values = arguments.values_[name];
    values.insert(values.begin(), words_alone.begin(), words_alone.end());
  }
  return arguments;
}

Arguments Arguments::of_line(const Command& command, std::span<const std::string> words) {
  std::vector<Exit> ignored;
  return read(command, words, false, ignored);
}

RememberedOptions Arguments::unsaid(const RememberedOptions& remembered) const {
  RememberedOptions unsaid;
  for (const auto& [name, value] : remembered) {
    const Flag* const flag = command_->flag(name);
    const bool is_meant = name != "output" || has_output_flag(*command_);
    if (flag != nullptr && is_meant && !has(flag->name) && !contradicts(*flag)) {
      unsaid.emplace(flag->name, value);
    }
  }
  return unsaid;
}

bool Arguments::contradicts(const Flag& flag) const {
  // A host file and a table without one exclude each other; what else says where a table is goes with both, but is that
  // of the table or file that was remembered with it.
  const std::string_view name = flag.name;
  const bool of_place = name == "table" || name == "index" || name == "endpoint" || name == "region";
  if ((has("config") && (of_place || name == "queue")) || (has("table") && (name == "config" || name == "queue"))) {
    return true;
  }
  // What is named by its queue or by its job.
  if (name == "queue" && plain_.contains("name")) {
    return true;
  }
  const auto excludes = [](const Flag& one, const Flag& other) {
    return contains(split(one.against, '|'), other.name);
  };
  return std::any_of(command_->flags.begin(), command_->flags.end(), [&](const Flag& other) {
    return (excludes(flag, other) || excludes(other, flag)) && has(other.name);
  });
}

void Arguments::add(const RememberedOptions& unsaid) {
  for (const auto& [name, value] : unsaid) {
    values_[name].push_back(value);
  }
}

OrExit<Arguments> Arguments::parse(const Command& command, const std::vector<std::string>& words, bool queue_first,
                                   const RememberedOptions& unsaid) {
  std::vector<Exit> wrong;
  Arguments arguments = read(command, words, queue_first, wrong);
  if (!wrong.empty()) {
    return wrong.front();
  }
  if (arguments.help_) {
    return arguments;
  }
  const bool queue_given = arguments.has("queue");
  arguments.add(unsaid);
  if (arguments.plain_.contains("id") && command.flag("id")->repeated && !queue_given && !arguments.has("table")) {
    arguments.plain_id_ = arguments.get("id");
  }
  for (const Flag& flag : command.flags) {
    SLUICE_PASS_ON(arguments.check(flag));
  }
  return arguments;
}

OrExit<void> Arguments::check(const Flag& flag) const {
  if (flag.required && get(flag.name).empty()) {
    return missing(*command_, flag, has(flag.name));
  }
  if (!has(flag.name)) {
    return {};
  }
  const auto spelled = [this](std::string_view name) {
    return plain_.contains(name) ? std::string(command_->flag(name)->value)
                                 : (name == "-" ? "" : "--") + std::string(name);
  };
  const auto given = [this](std::string_view name) { return name == "-" ? stdin_ : has(name); };
  if (flag.filled && get(flag.name).empty()) {
    return Exit::usage(spelled(flag.name) + " is empty; leave it out, or name something");
  }
  if (!flag.with.empty() && !given(flag.with)) {
    return Exit::usage(spelled(flag.name) + " goes with " + spelled(flag.with) + " only");
  }
  for (const std::string& other : split(flag.against, '|')) {
    if (given(other)) {
      return Exit::usage(spelled(flag.name) + " and " + spelled(other) + " exclude each other; give one");
    }
  }
  const Words choices = flag.one_of ? split(flag.value, '|') : Words();
  for (const std::string& word : flag.one_of ? all(flag.name) : Words()) {
    if (!contains(choices, word)) {
      return Exit::usage("--" + std::string(flag.name) + " \"" + word + "\": write one of " + sluice::joined(choices));
    }
  }
  return {};
}

Arguments Arguments::of(const RememberedOptions& options, std::vector<std::string> plain) {
  Arguments arguments;
  arguments.add(options);
  arguments.words_ = std::move(plain);
  return arguments;
}

bool Arguments::has(std::string_view name) const { return values_.find(name) != values_.end(); }

std::string Arguments::get(std::string_view name, std::string_view fallback) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string(fallback) : found->second.front();
}

std::vector<std::string> Arguments::all(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

OrExit<std::size_t> Arguments::count(std::string_view name, std::size_t fallback, std::size_t max) const {
  if (!has(name)) {
    return fallback;
  }
  const std::string text = get(name);
  const std::size_t value = parse_number<std::size_t>(text).value_or(0);
  if (value < 1 || value > max) {
    return Exit::usage("--" + std::string(name) + " " + text + ": write a whole number from 1 to " +
                       std::to_string(max));
  }
  return value;
}

OrExit<Duration> Arguments::duration(std::string_view name, Duration fallback, Duration least, Duration most) const {
  if (!has(name)) {
    return fallback;
  }
  const std::string text = get(name);
  const auto value = config::parse_duration(text);
  if (!value) {
    return Exit::usage("--" + std::string(name) + " " + text + " is no duration; write 1500ms, 30s, 15m, 2h or 1d");
  }
  if (*value < least || *value > most) {
    return Exit::usage("--" + std::string(name) + " " + text + ": write a time from " + config::format_duration(least) +
                       " to " + config::format_duration(most));
  }
  return *value;
}

OrExit<Output> Arguments::output(Output elsewhere) const {
  const auto variable = config::process_environment()(kOutputVariable);
  const std::string word = has("json") ? "json" : get("output", variable.value_or(std::string()));
  if (word.empty() && !has("output")) {
    return ::isatty(STDOUT_FILENO) == 1 ? Output::text : elsewhere;
  }
  if (word == "json") {
    return Output::json;
  }
  if (word == "text") {
    return Output::text;
  }
  return Exit::usage((has("output") ? "--output \"" : std::string(kOutputVariable) + "=\"") + word +
                     "\" is neither json nor text; write one of these");
}

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = [] {
    std::vector<Command> found{shell_command()};
    for (const auto family : kFamilies) {
      for (Command& command : family()) {
        found.push_back(std::move(command));
      }
    }
    std::vector<Command> all;
    for (const auto& [heading, names] : kGroups) {
      for (const std::string& name : split(names, ',')) {
        all.push_back(*find_command(found, name));
        all.back().group = heading;
      }
    }
    SLUICE_ASSERT(all.size() == found.size());
    return all;
  }();
  return kCommands;
}

const Command* find_command(const std::vector<Command>& commands, std::string_view name) {
  return find_where(commands, [name](const Command& command) {
    return command.name == name || (!name.empty() && command.alias == name);
  });
}

const Command* find_command(const std::vector<Command>& commands, const std::vector<std::string>& words) {
  const Command* both = words.size() > 1 ? find_command(commands, words[0] + " " + words[1]) : nullptr;
  return both != nullptr || words.empty() ? both : find_command(commands, words[0]);
}

int run_command_line(const std::vector<std::string>& words, Console& console, const RememberedOptions& remembered) {
  std::string name;
  const Exit end = dispatch(words, console, remembered, name);
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
