#include "host/cli/completion.hpp"
#include "host/cli/drop_in/drop_in.hpp"
#include "host/cli/drop_in/dynamomq_operations.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

using queue::StoredMessage;

OrExit<QueueSession> open(const Arguments& arguments) {
  return QueueSession::open(arguments, QueueSession::Queue::needed, QueueSession::HostFiles::named_only);
}

Exit show(const Result<StoredMessage>& message, Console& console) {
  if (message.has_error()) {
    return Exit::failure(message.error());
  }
  console.out(dynamomq_message(*message));
  return Exit::ok();
}

using Operation = Result<StoredMessage> (DynamoMqOperations::*)(const std::string& id);

/// A command on one message that shows it afterwards.
template <Operation operation>
Exit run_on_message(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, open(arguments));
  return show((DynamoMqOperations(*session).*operation)(arguments.get("id")), console);
}

using SilentOperation = Result<void> (DynamoMqOperations::*)(const std::string& id);

template <SilentOperation operation>
Exit run_silently(const Arguments& arguments, Console& /*console*/) {
  SLUICE_TRY(session, open(arguments));
  const auto done = (DynamoMqOperations(*session).*operation)(arguments.get("id"));
  return done.has_error() ? Exit::failure(done.error()) : Exit::ok();
}

Exit get(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, open(arguments));
  const auto message = DynamoMqOperations(*session).get(arguments.get("id"));
  if (message.has_error() && message.error().code() == ErrorCode::not_found) {
    console.out("null\n");
    return Exit::ok();
  }
  return show(message, console);
}

Exit receive(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, open(arguments));
  return show(DynamoMqOperations(*session).receive(), console);
}

Exit redrive(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, open(arguments));
  const auto message = DynamoMqOperations(*session).redrive(arguments.get("id"));
  if (message.has_error()) {
    return Exit::failure(message.error());
  }
  console.out(dynamomq_redriven(*message));
  return Exit::ok();
}

Exit ls(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, open(arguments));
  const auto messages = DynamoMqOperations(*session).list();
  if (messages.has_error()) {
    return Exit::failure(messages.error());
  }
  console.out(dynamomq_statuses(*messages, session->clock().wall_now()));
  return Exit::ok();
}

template <queue::Half half>
Exit count(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, open(arguments));
  const auto overview = DynamoMqOperations(*session).overview(half);
  if (overview.has_error()) {
    return Exit::failure(overview.error());
  }
  console.out(dynamomq_stats(half, *overview));
  return Exit::ok();
}

Exit enqueue_test(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, open(arguments));
  const BulkOutcome outcome = DynamoMqOperations(*session).enqueue_test();
  console.out(dynamomq_outcome(outcome, false));
  return outcome.failures.empty() ? Exit::ok() : Exit::failure(outcome.failures.front().error);
}

Exit purge(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, open(arguments));
  if (console.interactive() && !arguments.has("yes") &&
      !console.confirm("Remove every message of " + session->queue() + ", the DLQ's too?")) {
    return Exit::failure("nothing was removed");
  }
  const InterruptFlag interrupt;
  const auto outcome = DynamoMqOperations(*session).purge([&](std::uint64_t done) {
    console.progress(std::to_string(done) + " removed");
    return !interrupt.raised();
  });
  console.end_progress();
  if (outcome.has_error()) {
    return Exit::failure(outcome.error());
  }
  console.out(dynamomq_outcome(*outcome, true));
  if (outcome->denied) {
    return Exit::failure(*outcome->denied);
  }
  if (interrupt.raised()) {
    return Exit::failure("interrupted; " + std::to_string(outcome->successes.size()) + " messages were removed");
  }
  return Exit::ok();
}

Command make(std::string_view name, std::string_view summary, std::vector<Flag> flags,
             Exit (*run)(const Arguments&, Console&)) {
  Command command;
  command.name = name;
  command.summary = summary;
  command.flags = std::move(flags);
  command.run = run;
  return command;
}

Command with_alias(Command command, std::string_view alias) {
  command.alias = alias;
  return command;
}

std::vector<Command> make_commands() {
  const std::vector<Flag> id{{.name = "id", .value = "string", .help = "id of the message"}};
  // Scripts may give it where it means nothing, as there.
  const std::vector<Flag> unused_id{{.name = "id", .value = "string", .help = "not used"}};
  return {
      make("completion", "Print the script that completes words: completion bash, zsh, fish or powershell",
           {{.name = "no-descriptions", .help = "not used"}}, nullptr),
      make("delete", "Delete the message of an id", id, run_silently<&DynamoMqOperations::remove>),
      make("dlq", "Count the messages of the DLQ", unused_id, count<queue::Half::dlq>),
      make("enqueue-test", "Send the test messages A-101, A-202, A-303 and A-404", unused_id, enqueue_test),
      make("fail", "Make the message of an id visible again", id, run_on_message<&DynamoMqOperations::fail>),
      make("get", "Show the message of an id", id, get),
      make("help", "Help about any command", {}, nullptr),
      make("invalid", "Move the message of an id to the DLQ", id, run_silently<&DynamoMqOperations::invalid>),
      make("ls", "List ten messages and their states", {}, ls),
      make("purge", "Delete all messages of both halves", {{.name = "yes", .help = "do not ask on a terminal"}}, purge),
      // Its help does not name the alias, as DynamoMQ has none; the word is this program's own.
      with_alias(make("qstat", "Count the messages of the queue", {}, count<queue::Half::standard>), "stats"),
      make("receive", "Receive the next message, hidden for 30 seconds", {}, receive),
      make("redrive", "Move the message of an id from the DLQ back", id, redrive),
      make("reset", "Make the message of an id as if newly sent", id, run_on_message<&DynamoMqOperations::reset>),
  };
}

}  // namespace

const std::vector<Command>& drop_in_commands() {
  static const std::vector<Command> kCommands = make_commands();
  return kCommands;
}

}  // namespace sluice::cli
