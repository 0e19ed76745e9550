#include "host/cli/drop_in/drop_in.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>

#include "base/ranges.hpp"
#include "host/cli/drop_in/dynamomq_operations.hpp"
#include "host/cli/help.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/shell/shell.hpp"

namespace sluice::cli {

namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kName = "dynamomq";

/// What everything behind this file calls a flag: "table" is their "table-name".
std::string our_name(std::string_view theirs) { return std::string(theirs.substr(0, theirs.find('-'))); }

// What every command takes. Those without help are ours.
const Command& common() {
  static const Command kCommon{
      .name = kName,
      .flags = {{.name = "endpoint-url", .value = "string", .help = "address of DynamoDB, in place of AWS's own"},
                {.name = "index-name",
                 .value = "string",
                 .help = "index of the table [default: dynamo-mq-index-queue_type-sent_at]",
                 .alias = "queueing-index-name"},
                {.name = "table-name", .value = "string", .help = "table of the queue [default: dynamo-mq-table]"},
                {.name = "config", .value = "string"},
                {.name = "queue", .value = "string"}}};
  return kCommon;
}

/// Where the command's name stands: the first word that is neither a flag nor the value of one.
std::size_t command_position(const Words& words) {
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--") {
      break;
    }
    if (word.empty() || word.front() != '-') {
      return at;
    }
    const bool takes_next = word.rfind("--", 0) == 0 && word.find('=') == std::string::npos && word != "--help";
    at += takes_next ? 1 : 0;
  }
  return words.size();
}

std::string unknown_command(const std::string& name) {
  std::string text = "unknown command \"" + name + "\" for \"dynamomq\"";
  if (const auto meant = nearest_word(name, first_words(drop_in_commands()))) {
    text += "\n\nDid you mean this?\n\t" + *meant + "\n";
  }
  return text;
}

/// Reads the flag at `at`, and the next word where that is its value; returns what is wrong, or nothing.
std::string read_flag(const Command* command, const Words& words, std::size_t& at, RememberedOptions& values) {
  const std::string& word = words[at];
  const auto equals = word.find('=');
  const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
  const Flag* flag = common().flag(name);
  flag = flag == nullptr && command != nullptr ? command->flag(name) : flag;
  if (flag == nullptr) {
    return "unknown flag: --" + name;
  }
  std::string& value = values[our_name(flag->name)];
  if (flag->value.empty()) {
    value = equals == std::string::npos ? "true" : word.substr(equals + 1);
    // As Go reads them.
    constexpr std::array<std::string_view, 6> kYes{"1", "t", "T", "true", "TRUE", "True"};
    constexpr std::array<std::string_view, 6> kNo{"0", "f", "F", "false", "FALSE", "False"};
    if (contains(kNo, value)) {
      values.erase(our_name(flag->name));
    } else if (!contains(kYes, value)) {
      return "invalid argument \"" + value + "\" for \"--" + name + "\" flag";
    }
  } else if (equals != std::string::npos) {
    value = word.substr(equals + 1);
  } else if (at + 1 < words.size()) {
    value = words[++at];
  } else {
    return "flag needs an argument: --" + name;
  }
  return {};
}

/// Reads flags one after the other, as far as "--"; stops at the first that is wrong.
void read_flags(const Words& words, DropInWords& parsed) {
  RememberedOptions values;
  Words plain;
  for (std::size_t at = 0; at < words.size() && words[at] != "--" && parsed.error.empty(); ++at) {
    const std::string& word = words[at];
    if (word == "-h" || word == "--help") {
      parsed.wants_help = true;
    } else if (word.starts_with("--")) {
      parsed.error = read_flag(parsed.command, words, at, values);
    } else if (word.size() > 1 && word.front() == '-') {
      parsed.error = "unknown shorthand flag: '" + word.substr(1, 1) + "' in " + word;
    } else {
      plain.push_back(word);
    }
  }
  parsed.arguments = Arguments::of(values, std::move(plain));
}

/// A row for each pair, the right halves in one column.
std::string in_two_columns(const std::vector<std::pair<std::string, std::string>>& rows, std::size_t gap) {
  std::size_t column = 0;
  for (const auto& [left, right] : rows) {
    column = std::max(column, left.size() + gap);
  }
  std::string text;
  for (const auto& [left, right] : rows) {
    text += left + std::string(column - left.size(), ' ') + right + "\n";
  }
  return text;
}

std::string flag_lines(const Command* command) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Flag& flag : command == nullptr ? common().flags : joined(common().flags, command->flags)) {
    if (!flag.help.empty()) {
      lines.emplace_back(
          "      --" + std::string(flag.name) + (flag.value.empty() ? "" : " " + std::string(flag.value)), flag.help);
    }
  }
  lines.emplace_back("  -h, --help", "help for " + std::string(command == nullptr ? common().name : command->name));
  std::sort(lines.begin(), lines.end(), [](const auto& left, const auto& right) {
    return left.first.substr(left.first.find("--")) < right.first.substr(right.first.find("--"));
  });
  return in_two_columns(lines, 3);
}

using queue::StoredMessage;
using Run = std::function<Exit(const Arguments& arguments, Console& console)>;

OrExit<QueueSession> open(const Arguments& arguments) {
  return QueueSession::open(arguments, QueueSession::Queue::needed, QueueSession::HostFiles::named_only);
}

/// A command that does `act` with the queue and the id that are named: a text to print, or why there is none.
template <typename Act>
Run on_queue(Act act) {
  return [act](const Arguments& arguments, Console& console) -> Exit {
    SLUICE_TRY(session, open(arguments));
    DynamoMqOperations operations(*session);
    const Result<std::string> text = act(operations, arguments.get("id"));
    SLUICE_PASS_ON(text);
    return print(*text, console);
  };
}

/// The message as it is afterwards.
Run on_message(Result<StoredMessage> (DynamoMqOperations::*operation)(const std::string& id),
               std::string (*shown)(const StoredMessage& message) = dynamomq_message) {
  return on_queue([=](DynamoMqOperations& operations, const std::string& id) -> Result<std::string> {
    SLUICE_TRY(message, (operations.*operation)(id));
    return shown(*message);
  });
}

/// Without a word.
Run silently(Result<void> (DynamoMqOperations::*operation)(const std::string& id)) {
  return on_queue([=](DynamoMqOperations& operations, const std::string& id) -> Result<std::string> {
    SLUICE_PASS_ON((operations.*operation)(id));
    return std::string();
  });
}

Run count(queue::Half half) {
  return on_queue([half](DynamoMqOperations& operations, const std::string& /*id*/) -> Result<std::string> {
    SLUICE_TRY(overview, operations.overview(half));
    return dynamomq_stats(half, *overview);
  });
}

Result<std::string> get(DynamoMqOperations& operations, const std::string& id) {
  const auto message = operations.get(id);
  if (message.has_error() && message.error().code() == ErrorCode::not_found) {
    return std::string("null\n");
  }
  SLUICE_PASS_ON(message);
  return dynamomq_message(*message);
}

Result<std::string> receive(DynamoMqOperations& operations, const std::string& /*id*/) {
  SLUICE_TRY(message, operations.receive());
  return dynamomq_message(*message);
}

Result<std::string> ls(DynamoMqOperations& operations, const std::string& /*id*/) {
  SLUICE_TRY(messages, operations.list());
  return dynamomq_statuses(*messages, SystemClock().wall_now());
}

Exit enqueue_test(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, open(arguments));
  const BulkOutcome outcome = DynamoMqOperations(*session).enqueue_test();
  console.out(dynamomq_outcome(outcome, false));
  return outcome.failures.empty() ? Exit::ok() : Exit(outcome.failures.front().error);
}

Exit purge(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, open(arguments));
  if (console.interactive()) {
    SLUICE_PASS_ON(
        confirmed(arguments, console, "Remove every message of " + session->queue() + ", the DLQ's too?", "removed"));
  }
  const InterruptFlag interrupt;
  const auto outcome = DynamoMqOperations(*session).purge([&](std::uint64_t done) {
    console.progress(std::to_string(done) + " removed");
    return !interrupt.raised();
  });
  console.end_progress();
  SLUICE_PASS_ON(outcome);
  console.out(dynamomq_outcome(*outcome, true));
  const auto is_denied = [](const auto& failed) { return failed.error.code() == ErrorCode::denied; };
  if (const auto* const denied = find_where(outcome->failures, is_denied)) {
    return denied->error;
  }
  if (interrupt.raised()) {
    return Exit::failure("interrupted; " + std::to_string(outcome->successes.size()) + " messages were removed");
  }
  return Exit::ok();
}

Exit help(const Arguments& arguments, Console& console) {
  const Words& topic = arguments.plain();
  const Command* command = topic.empty() ? nullptr : find_command(drop_in_commands(), topic.front());
  if (!topic.empty() && command == nullptr) {
    std::string text = "Unknown help topic [";
    for (const std::string& word : topic) {
      text += (&word == &topic.front() ? "`" : " `") + word + "`";
    }
    console.error_text(text + "]\n" + drop_in_usage(nullptr));
    return Exit::ok();  // no failure there either
  }
  return print(drop_in_help(command), console);
}

Exit completion(const Arguments& arguments, Console& console) {
  const Words& shell = arguments.plain();
  const auto script = shell.empty() ? std::nullopt : completion_for(shell.front(), kName);
  return print(script ? *script : drop_in_help(find_command(drop_in_commands(), "completion")), console);
}

Command make(std::string_view name, std::string_view summary, std::vector<Flag> flags, Run run,
             std::string_view alias = {}) {
  return {.name = name, .alias = alias, .summary = summary, .flags = std::move(flags), .run = std::move(run)};
}

std::vector<Command> make_commands() {
  using Operations = DynamoMqOperations;
  const std::vector<Flag> id{{.name = "id", .value = "string", .help = "id of the message"}};
  // Scripts may give it where it means nothing, as there.
  const std::vector<Flag> unused_id{{.name = "id", .value = "string", .help = "not used"}};
  return {
      make("completion", "Print the script that completes words: completion bash, zsh, fish or powershell",
           {{.name = "no-descriptions", .help = "not used"}}, completion),
      make("delete", "Delete the message of an id", id, silently(&Operations::remove)),
      make("dlq", "Count the messages of the DLQ", unused_id, count(queue::Half::dlq)),
      make("enqueue-test", "Send the test messages A-101, A-202, A-303 and A-404", unused_id, enqueue_test),
      make("fail", "Make the message of an id visible again", id, on_message(&Operations::fail)),
      make("get", "Show the message of an id", id, on_queue(get)),
      make("help", "Help about any command", {}, help),
      make("invalid", "Move the message of an id to the DLQ", id, silently(&Operations::invalid)),
      make("ls", "List ten messages and their states", {}, on_queue(ls)),
      make("purge", "Delete all messages of both halves", {{.name = "yes", .help = "do not ask on a terminal"}}, purge),
      // Its help does not name the alias, as DynamoMQ has none; the word is this program's own.
      make("qstat", "Count the messages of the queue", {}, count(queue::Half::standard), "stats"),
      make("receive", "Receive the next message, hidden for 30 seconds", {}, on_queue(receive)),
      make("redrive", "Move the message of an id from the DLQ back", id,
           on_message(&Operations::redrive, dynamomq_redriven)),
      make("reset", "Make the message of an id as if newly sent", id, on_message(&Operations::reset)),
  };
}

/// DynamoMQ says what is wrong on both streams: scripts read the one, people the other.
int fail(const std::string& error, const std::string& usage, Console& console) {
  console.out("ERROR: " + error + "\n");
  console.flush();
  console.error_text("Error: " + error + "\n" + usage + "\n");
  return kExitFailure;
}

int dispatch(const Words& words, Console& console) {
  if (!words.empty() && words.front() == "__complete") {
    console.out(suggest(drop_in_commands(), Words(words.begin() + 1, words.end())).lines());
    return kExitOk;
  }
  const DropInWords parsed = parse_drop_in(words);
  if (parsed.unknown_command) {
    return fail(parsed.error, "Run 'dynamomq --help' for usage.", console);
  }
  if (!parsed.error.empty()) {
    return fail(parsed.error, drop_in_usage(parsed.command), console);
  }
  if (parsed.wants_help) {
    console.out(drop_in_help(parsed.command));
    return kExitOk;
  }
  const Exit end = parsed.command == nullptr ? run_dynamomq_shell(parsed.arguments, console)
                                             : parsed.command->run(parsed.arguments, console);
  if (end.code() != kExitOk) {
    return fail(end.lines().empty() ? "internal error" : end.lines().front(), drop_in_usage(parsed.command), console);
  }
  return kExitOk;
}

}  // namespace

DropInWords parse_drop_in(const Words& words) {
  DropInWords parsed;
  const std::size_t position = command_position(words);
  Words rest = words;
  if (position < words.size()) {
    parsed.command = find_command(drop_in_commands(), words[position]);
    if (parsed.command == nullptr) {
      parsed.error = unknown_command(words[position]);
      parsed.unknown_command = true;
      return parsed;
    }
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(position));
  }
  read_flags(rest, parsed);
  return parsed;
}

std::string drop_in_usage(const Command* command) {
  std::string text = "Usage:\n  dynamomq " + (command == nullptr ? "" : std::string(command->name) + " ") + "[flags]\n";
  if (command == nullptr) {
    text += "  dynamomq [command]\n\nAvailable Commands:\n";
    std::vector<std::pair<std::string, std::string>> rows;
    for (const Command& listed : drop_in_commands()) {
      rows.emplace_back("  " + std::string(listed.name), listed.summary);
    }
    text += in_two_columns(rows, 1);
  }
  text += "\nFlags:\n" + flag_lines(command);
  if (command == nullptr) {
    text += "\nUse \"dynamomq [command] --help\" for more information about a command.\n";
  }
  return text;
}

std::string drop_in_help(const Command* command) {
  const std::string about = command == nullptr
                                ? "Operates message queues in DynamoDB tables: Sluice, in the place of DynamoMQ's own "
                                  "tool. Without a command it is interactive."
                                : std::string(command->summary) + ".";
  return about + "\n\n" + drop_in_usage(command);
}

const std::vector<Command>& drop_in_commands() {
  static const std::vector<Command> kCommands = make_commands();
  return kCommands;
}

bool is_drop_in(std::string_view program) {
  const auto slash = program.rfind('/');
  return (slash == std::string_view::npos ? program : program.substr(slash + 1)) == kName;
}

int run_drop_in(const Words& words, Console& console) {
  const int code = dispatch(words, console);
  console.flush();
  console.end_progress();
  if (console.output_failure() == EPIPE) {
    return kExitBrokenPipe;
  }
  return console.output_failure() != 0 ? kExitFailure : code;
}

}  // namespace sluice::cli
