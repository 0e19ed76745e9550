#include "host/cli/shell/dynamomq_shell.hpp"

#include <algorithm>
#include <array>

#include "base/text/visible.hpp"

namespace sluice::cli {

namespace {

constexpr std::string_view kShellHelp =
    "... this is Interactive HELP!\n"
    "  > qstat            how many messages the queue holds, and the ids of the first 100\n"
    "  > dlq              the same of its dead-letter queue (DLQ)\n"
    "  > enqueue-test     send the test messages A-101, A-202, A-303 and A-404, in place of those with their ids\n"
    "  > purge            remove every message of the table, its DLQ included\n"
    "  > ls               the ids and states of the first 10 messages\n"
    "  > receive          claim the oldest message for 30 seconds, and select it\n"
    "  > id <id>          select a message; the commands below are about it\n"
    "    > system         its state, counts and times\n"
    "    > data           its content\n"
    "    > info           all of it\n"
    "    > reset          make it as if it had just been sent\n"
    "    > redrive        move it from the DLQ back to the queue\n"
    "    > delete         remove it\n"
    "    > fail           make it visible again at once\n"
    "    > invalid        move it to the DLQ\n"
    "  > id               select none\n"
    "  > quit             end, as the end of input does\n";

std::string ids_under(std::string_view headline, const std::vector<std::string>& ids) {
  std::string text(headline);
  for (const std::string& id : ids) {
    text += "* ID: " + visible(id) + "\n";
  }
  return text;
}

/// What could be done, and after it the first thing that could not.
std::string outcome_text(std::string_view headline, const BulkOutcome& outcome) {
  std::string text = ids_under(headline, outcome.successes);
  for (const auto& failed : outcome.failures) {
    text += "ERROR: " + visible(failed.error.message()) + ", ID: " + visible(failed.id) + "\n";
  }
  return text;
}

Error not_found(const std::string& id) { return {ErrorCode::not_found, "message not found, ID: " + id}; }

std::string about(std::string_view before, const std::string& id, std::string_view after) {
  return std::string(before) + visible(id) + std::string(after) + "\n";
}

}  // namespace

struct DynamoMqShell::Commands {
  static Answer help(DynamoMqShell&, const Parameters&) { return std::string(kShellHelp); }

  static Answer qstat(DynamoMqShell& shell, const Parameters&) { return shell.with_stats({}, "Queue status:\n"); }

  static Answer dlq(DynamoMqShell& shell, const Parameters&) {
    SLUICE_TRY(overview, shell.operations_.overview(queue::Half::dlq));
    return "DLQ status:\n" + dynamomq_stats(queue::Half::dlq, *overview);
  }

  static Answer enqueue_test(DynamoMqShell& shell, const Parameters&) {
    Answer answer = outcome_text("Send a message with IDs:\n", shell.operations_.enqueue_test());
    shell.refresh();
    return answer;
  }

  static Answer purge(DynamoMqShell& shell, const Parameters&) {
    if (shell.surroundings_.confirm &&
        !shell.surroundings_.confirm("Remove every message of this table, its DLQ included?")) {
      return std::string("nothing was removed\n");
    }
    bool stopped = false;
    const auto outcome = shell.operations_.purge([&shell, &stopped](std::uint64_t) {
      stopped = shell.surroundings_.interrupted && shell.surroundings_.interrupted();
      return !stopped;
    });
    shell.refresh();
    SLUICE_PASS_ON(outcome);
    if (outcome->successes.empty() && outcome->failures.empty()) {
      return std::string("Message table is empty ... nothing to remove!\n");
    }
    return outcome_text("List messages of removed IDs:\n", *outcome) +
           (stopped ? "stopped after " + std::to_string(outcome->successes.size()) + " messages; purge again to go on\n"
                    : "");
  }

  static Answer ls(DynamoMqShell& shell, const Parameters&) {
    SLUICE_TRY(messages, shell.operations_.list());
    if (messages->empty()) {
      return std::string("Queue is empty!\n");
    }
    std::string text = "List messages of first 10 IDs:\n";
    for (const auto& message : *messages) {
      text += "* ID: " + visible(message.message.id) +
              ", status: " + std::string(dynamomq_status(message, shell.clock_.wall_now())) + "\n";
    }
    return text;
  }

  static Answer receive(DynamoMqShell& shell, const Parameters&) {
    SLUICE_TRY(message, shell.operations_.receive());
    shell.selected_ = std::move(*message);
    return shell.with_stats(
        about("ReceiveMessage was successful ... record peeked is: [", shell.selected_->message.id, "]") +
            dynamomq_system_info(*shell.selected_, shell.clock_.wall_now()),
        "Queue stats:\n");
  }

  static Answer id(DynamoMqShell& shell, const Parameters& parameters) {
    if (parameters.empty()) {
      shell.selected_.reset();
      return std::string("Going back to standard Interactive mode!\n");
    }
    auto message = shell.operations_.get(parameters.front());
    if (message.has_error()) {
      return message.error().code() == ErrorCode::not_found ? not_found(parameters.front()) : message.error();
    }
    shell.selected_ = std::move(*message);
    return about("Message's [", shell.selected_->message.id, "] record dump:") + dynamomq_message(*shell.selected_);
  }

  static Answer system(DynamoMqShell& shell, const Parameters&) {
    return "ID's system info:\n" + dynamomq_system_info(*shell.selected_, shell.clock_.wall_now());
  }

  static Answer data(DynamoMqShell& shell, const Parameters&) {
    return "Data info:\n" + dynamomq_data(shell.selected_->message);
  }

  static Answer info(DynamoMqShell& shell, const Parameters&) {
    return "Record's dump:\n" + dynamomq_message(*shell.selected_);
  }

  static Answer reset(DynamoMqShell& shell, const Parameters&) {
    SLUICE_PASS_ON(shell.keep_selected(shell.operations_.reset(shell.selected_->message.id)));
    return "Reset system info:\n" + dynamomq_system_info(*shell.selected_, shell.clock_.wall_now());
  }

  static Answer redrive(DynamoMqShell& shell, const Parameters&) {
    SLUICE_PASS_ON(shell.keep_selected(shell.operations_.redrive(shell.selected_->message.id)));
    return "Ready system info:\n" + dynamomq_redriven(*shell.selected_);
  }

  static Answer remove(DynamoMqShell& shell, const Parameters&) {
    const std::string id = shell.selected_->message.id;
    SLUICE_PASS_ON(shell.operations_.remove(id));
    shell.selected_.reset();
    return shell.with_stats(about("Processing for ID [", id, "] is deleted successfully! Remove from the queue!"),
                            "Queue status:\n");
  }

  static Answer fail(DynamoMqShell& shell, const Parameters&) {
    const std::string id = shell.selected_->message.id;
    SLUICE_PASS_ON(shell.keep_selected(shell.operations_.fail(id)));
    return shell.with_stats(
        about("Processing for ID [", id, "] has failed! ReplaceMessage the record back to the queue!"),
        "Queue status:\n");
  }

  static Answer invalid(DynamoMqShell& shell, const Parameters&) {
    const std::string id = shell.selected_->message.id;
    const auto moved = shell.operations_.invalid(id);
    shell.refresh();
    SLUICE_PASS_ON(moved);
    return shell.with_stats(about("Processing for ID [", id, "] has failed .. invalid data! Send record to DLQ!"),
                            "Queue status:\n");
  }

  struct Entry {
    std::string_view name;
    bool needs_message;
    Answer (*run)(DynamoMqShell& shell, const Parameters& parameters);
  };
  // DynamoMQ's README names `qstats`, `et` and `sys` too, which its program never knew.
  static constexpr std::array<Entry, 21> kEntries{{
      {"h", false, &Commands::help},
      {"?", false, &Commands::help},
      {"help", false, &Commands::help},
      {"qstat", false, &Commands::qstat},
      {"qstats", false, &Commands::qstat},
      {"dlq", false, &Commands::dlq},
      {"enqueue-test", false, &Commands::enqueue_test},
      {"et", false, &Commands::enqueue_test},
      {"purge", false, &Commands::purge},
      {"ls", false, &Commands::ls},
      {"receive", false, &Commands::receive},
      {"id", false, &Commands::id},
      {"system", true, &Commands::system},
      {"sys", true, &Commands::system},
      {"data", true, &Commands::data},
      {"info", true, &Commands::info},
      {"reset", true, &Commands::reset},
      {"redrive", true, &Commands::redrive},
      {"delete", true, &Commands::remove},
      {"fail", true, &Commands::fail},
      {"invalid", true, &Commands::invalid},
  }};
};

std::string DynamoMqShell::greeting() const {
  const std::string opened =
      surroundings_.embedded ? "SQLite store is properly opened!" : "AWS session is properly established!";
  return "===========================================================\n"
         ">> Welcome to DynamoMQ CLI! [INTERACTIVE MODE]\n"
         "===========================================================\n"
         "for help, enter one of the following: ? or h or help\n"
         "all commands in CLIs need to be typed in lowercase\n"
         "\n... " +
         opened + "\nAWSRegion: " + visible(surroundings_.region) + "\nTableName: " + visible(surroundings_.table) +
         "\nEndpointURL: " + (surroundings_.embedded ? "file:" : "") + visible(surroundings_.endpoint) + "\n\n";
}

std::string DynamoMqShell::prompt() const {
  return selected_ ? "\nID <" + visible(selected_->message.id) + "> >> Enter command: " : "\n>> Enter command: ";
}

Shell::Next DynamoMqShell::step(const std::string& line, const ShellOutput& output) {
  const TypedCommand typed = parse_input(line);
  if (typed.name == "quit" || typed.name == "q") {
    return Next::end;
  }
  const Answer given = answer(typed);
  output.out(given.has_value() ? *given : "ERROR: " + visible(given.error().message()) + "\n");
  return Next::go_on;
}

DynamoMqShell::Answer DynamoMqShell::answer(const TypedCommand& typed) {
  const auto& known = Commands::kEntries;
  const auto* const entry = std::find_if(known.begin(), known.end(),
                                         [&typed](const auto& candidate) { return candidate.name == typed.name; });
  if (entry == known.end()) {
    return Error(ErrorCode::invalid, "unrecognized command");
  }
  if (entry->needs_message && !selected_) {
    // The backtick that is never closed is DynamoMQ's, and so are the scripts that look for it.
    return Error(ErrorCode::invalid,
                 "`" + typed.name + "` command can be only used in the Interactive mode. Call first `id");
  }
  return entry->run(*this, typed.parameters);
}

Completion DynamoMqShell::complete(std::string_view before_cursor) {
  const auto start = before_cursor.find_last_of(" \t") + 1;  // 0 where there is none
  const std::string_view typed = before_cursor.substr(start);
  Completion completion{.replaced = typed.size(), .words = {}};
  const auto offer = [&completion, typed](std::string_view word) {
    if (word.substr(0, typed.size()) == typed) {
      completion.words.emplace_back(word);
    }
  };
  const TypedCommand before = parse_input(before_cursor.substr(0, start));
  if (before.name.empty()) {
    for (const auto& entry : Commands::kEntries) {
      offer(entry.name);
    }
    offer("quit");
  } else if (before.name == "id" && before.parameters.empty()) {
    if (const auto messages = operations_.list(); messages.has_value()) {
      for (const auto& message : *messages) {
        // Nothing is quoted here, so that an id ends at the first space.
        const std::string& id = message.message.id;
        if (id.find_first_of(" \t") == std::string::npos && can_stand_on_line(id)) {
          offer(id);
        }
      }
    }
  }
  std::sort(completion.words.begin(), completion.words.end());
  return completion;
}

DynamoMqShell::Answer DynamoMqShell::with_stats(std::string_view text, std::string_view headline) {
  const auto overview = operations_.overview(queue::Half::standard);
  if (overview.has_error()) {
    return std::string(text) + "ERROR: " + visible(overview.error().message()) + "\n";
  }
  return std::string(text) + std::string(headline) + dynamomq_stats(queue::Half::standard, *overview);
}

Result<void> DynamoMqShell::keep_selected(Result<queue::StoredMessage> changed) {
  if (changed.has_error()) {
    refresh();
    return changed.error();
  }
  selected_ = std::move(*changed);
  return {};
}

void DynamoMqShell::refresh() {
  if (!selected_) {
    return;
  }
  auto message = operations_.get(selected_->message.id);
  if (message.has_value()) {
    selected_ = std::move(*message);
  } else if (message.error().code() == ErrorCode::not_found) {
    selected_.reset();
  }
}

}  // namespace sluice::cli
