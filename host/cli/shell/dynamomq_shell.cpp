#include <algorithm>
#include <array>

#include "base/ranges.hpp"
#include "base/text/visible.hpp"
#include "dynamo/settings.hpp"
#include "host/cli/drop_in/dynamomq_operations.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/shell/shell.hpp"
#include "host/cli/words.hpp"

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

std::string region_of(const QueuePlace& place) {
  if (place.in_sqlite() || !place.store().region.empty()) {
    return place.store().region;
  }
  const auto settings = dynamo::resolve_settings(dynamo::AwsEnvironment::of_process());
  return settings.has_error() ? std::string() : settings->region;
}

class DynamoMqShell final : public Shell {
 public:
  DynamoMqShell(QueueSession& session, Console& console) : session_(session), console_(console), operations_(session) {}

  std::string greeting() const override {
    const QueuePlace& place = session_.place();
    const bool embedded = place.in_sqlite();
    const std::string opened = embedded ? "SQLite store is properly opened!" : "AWS session is properly established!";
    const std::string table = embedded ? session_.queue() : place.host().queue(session_.queue()).table;
    const std::string endpoint = embedded ? "file:" + place.store().path : place.store().endpoint;
    return "===========================================================\n"
           ">> Welcome to DynamoMQ CLI! [INTERACTIVE MODE]\n"
           "===========================================================\n"
           "for help, enter one of the following: ? or h or help\n"
           "all commands in CLIs need to be typed in lowercase\n"
           "\n... " +
           opened + "\nAWSRegion: " + visible(region_of(place)) + "\nTableName: " + visible(table) +
           "\nEndpointURL: " + visible(endpoint) + "\n\n";
  }

  std::string prompt() const override {
    return selected_ ? "\nID <" + visible(selected_->message.id) + "> >> Enter command: " : "\n>> Enter command: ";
  }

  Next step(const std::string& line) override {
    const TypedCommand typed = parse_input(line);
    if (typed.name == "quit" || typed.name == "q") {
      return Next::end;
    }
    const Answer given = answer(typed);
    console_.out(given.has_value() ? *given : "ERROR: " + visible(given.error().message()) + "\n");
    return Next::go_on;
  }

  Completion complete(std::string_view before_cursor) override {
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
      for (const auto& entry : kEntries) {
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

  std::string farewell() const override { return "... Interactive is ending\n\n\n"; }
  int last_failure() const override { return kExitOk; }  // who calls DynamoMQ's looks at its texts
  bool may_be_kept(const std::string& /*line*/) const override { return true; }

 private:
  /// Text for standard output, or why there is none.
  using Answer = Result<std::string>;
  using Parameters = std::vector<std::string>;

  Answer help(const Parameters&) { return std::string(kShellHelp); }

  Answer qstat(const Parameters&) { return with_stats({}, "Queue status:\n"); }

  Answer dlq(const Parameters&) {
    SLUICE_TRY(overview, operations_.overview(queue::Half::dlq));
    return "DLQ status:\n" + dynamomq_stats(queue::Half::dlq, *overview);
  }

  Answer enqueue_test(const Parameters&) {
    Answer answer = outcome_text("Send a message with IDs:\n", operations_.enqueue_test());
    refresh();
    return answer;
  }

  Answer purge(const Parameters&) {
    if (console_.interactive() && !console_.confirm("Remove every message of this table, its DLQ included?")) {
      return std::string("nothing was removed\n");
    }
    bool stopped = false;
    const auto outcome = operations_.purge([this, &stopped](std::uint64_t) {
      stopped = !console_.writable();
      return !stopped;
    });
    refresh();
    SLUICE_PASS_ON(outcome);
    if (outcome->successes.empty() && outcome->failures.empty()) {
      return std::string("Message table is empty ... nothing to remove!\n");
    }
    if (stopped) {  // the answer is not shown then
      console_.note("stopped after " + std::to_string(outcome->successes.size()) + " messages; purge again to go on");
    }
    return outcome_text("List messages of removed IDs:\n", *outcome);
  }

  Answer ls(const Parameters&) {
    SLUICE_TRY(messages, operations_.list());
    if (messages->empty()) {
      return std::string("Queue is empty!\n");
    }
    std::string text = "List messages of first 10 IDs:\n";
    for (const auto& message : *messages) {
      text += "* ID: " + visible(message.message.id) +
              ", status: " + std::string(dynamomq_status(message, session_.clock().wall_now())) + "\n";
    }
    return text;
  }

  Answer receive(const Parameters&) {
    SLUICE_TRY(message, operations_.receive());
    selected_ = std::move(*message);
    return with_stats(about("ReceiveMessage was successful ... record peeked is: [", selected_->message.id, "]") +
                          dynamomq_system_info(*selected_, session_.clock().wall_now()),
                      "Queue stats:\n");
  }

  Answer id(const Parameters& parameters) {
    if (parameters.empty()) {
      selected_.reset();
      return std::string("Going back to standard Interactive mode!\n");
    }
    auto message = operations_.get(parameters.front());
    if (message.has_error()) {
      return message.error().code() == ErrorCode::not_found ? not_found(parameters.front()) : message.error();
    }
    selected_ = std::move(*message);
    return about("Message's [", selected_->message.id, "] record dump:") + dynamomq_message(*selected_);
  }

  Answer system(const Parameters&) {
    return "ID's system info:\n" + dynamomq_system_info(*selected_, session_.clock().wall_now());
  }

  Answer data(const Parameters&) { return "Data info:\n" + dynamomq_data(selected_->message); }

  Answer info(const Parameters&) { return "Record's dump:\n" + dynamomq_message(*selected_); }

  Answer reset(const Parameters&) {
    SLUICE_PASS_ON(keep_selected(operations_.reset(selected_->message.id)));
    return "Reset system info:\n" + dynamomq_system_info(*selected_, session_.clock().wall_now());
  }

  Answer redrive(const Parameters&) {
    SLUICE_PASS_ON(keep_selected(operations_.redrive(selected_->message.id)));
    return "Ready system info:\n" + dynamomq_redriven(*selected_);
  }

  Answer remove(const Parameters&) {
    const std::string id = selected_->message.id;
    SLUICE_PASS_ON(operations_.remove(id));
    selected_.reset();
    return with_stats(about("Processing for ID [", id, "] is deleted successfully! Remove from the queue!"),
                      "Queue status:\n");
  }

  Answer fail(const Parameters&) {
    const std::string id = selected_->message.id;
    SLUICE_PASS_ON(keep_selected(operations_.fail(id)));
    return with_stats(about("Processing for ID [", id, "] has failed! ReplaceMessage the record back to the queue!"),
                      "Queue status:\n");
  }

  Answer invalid(const Parameters&) {
    const std::string id = selected_->message.id;
    const auto moved = operations_.invalid(id);
    refresh();
    SLUICE_PASS_ON(moved);
    return with_stats(about("Processing for ID [", id, "] has failed .. invalid data! Send record to DLQ!"),
                      "Queue status:\n");
  }

  struct Entry {
    std::string_view name;
    bool needs_message;
    Answer (DynamoMqShell::*run)(const Parameters& parameters);
  };
  // DynamoMQ's README names `qstats`, `et` and `sys` too, which its program never knew.
  static constexpr std::array<Entry, 21> kEntries{{
      {"h", false, &DynamoMqShell::help},
      {"?", false, &DynamoMqShell::help},
      {"help", false, &DynamoMqShell::help},
      {"qstat", false, &DynamoMqShell::qstat},
      {"qstats", false, &DynamoMqShell::qstat},
      {"dlq", false, &DynamoMqShell::dlq},
      {"enqueue-test", false, &DynamoMqShell::enqueue_test},
      {"et", false, &DynamoMqShell::enqueue_test},
      {"purge", false, &DynamoMqShell::purge},
      {"ls", false, &DynamoMqShell::ls},
      {"receive", false, &DynamoMqShell::receive},
      {"id", false, &DynamoMqShell::id},
      {"system", true, &DynamoMqShell::system},
      {"sys", true, &DynamoMqShell::system},
      {"data", true, &DynamoMqShell::data},
      {"info", true, &DynamoMqShell::info},
      {"reset", true, &DynamoMqShell::reset},
      {"redrive", true, &DynamoMqShell::redrive},
      {"delete", true, &DynamoMqShell::remove},
      {"fail", true, &DynamoMqShell::fail},
      {"invalid", true, &DynamoMqShell::invalid},
  }};

  Answer answer(const TypedCommand& typed) {
    const auto* const entry = find_where(kEntries, [&typed](const auto& known) { return known.name == typed.name; });
    if (entry == nullptr) {
      return Error(ErrorCode::invalid, "unrecognized command");
    }
    if (entry->needs_message && !selected_) {
      // The backtick that is never closed is DynamoMQ's, and so are the scripts that look for it.
      return Error(ErrorCode::invalid,
                   "`" + typed.name + "` command can be only used in the Interactive mode. Call first `id");
    }
    return (this->*entry->run)(typed.parameters);
  }

  /// What happened, and the statistics below it.
  Answer with_stats(std::string_view text, std::string_view headline) {
    const auto overview = operations_.overview(queue::Half::standard);
    if (overview.has_error()) {
      return std::string(text) + "ERROR: " + visible(overview.error().message()) + "\n";
    }
    return std::string(text) + std::string(headline) + dynamomq_stats(queue::Half::standard, *overview);
  }

  /// Selects the message as it is after a change of it.
  Result<void> keep_selected(Result<queue::StoredMessage> changed) {
    if (changed.has_error()) {
      refresh();
      return changed.error();
    }
    selected_ = std::move(*changed);
    return {};
  }

  /// Reads the selected message anew; drops it when it is gone.
  void refresh() {
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

  QueueSession& session_;
  Console& console_;
  DynamoMqOperations operations_;
  std::optional<queue::StoredMessage> selected_;
};

}  // namespace

std::unique_ptr<Shell> dynamomq_shell(QueueSession& session, Console& console) {
  return std::make_unique<DynamoMqShell>(session, console);
}

}  // namespace sluice::cli
