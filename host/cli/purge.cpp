#include "host/cli/command.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/json_text.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

/// A purge is many requests; each has its own time-out in the store, and Ctrl-C ends it between two.
constexpr Deadline kNoDeadline = Deadline::never();

std::string half_name(const queue::QueueAddress& address) {
  return (address.type == queue::QueueType::dlq ? "the dead-letter half of queue " : "queue ") + address.queue;
}

/// Exit 0 when the purge may go on.
Exit agree(QueueSession& session, const queue::QueueAddress& address, const Arguments& arguments, Console& console) {
  if (arguments.has("yes")) {
    return Exit::ok();
  }
  if (!console.interactive()) {
    return Exit::usage("this removes every message of " + half_name(address) +
                       " and there is no terminal to ask on; add --yes to confirm");
  }
  const auto stats = session.store().stats(address, session.deadline());
  if (stats.has_error()) {
    return Exit::failure(stats.error());
  }
  const std::string question =
      "Remove all " + std::to_string(stats->total()) + " messages of " + half_name(address) + "?";
  return console.confirm(question) ? Exit::ok() : Exit::failure("nothing was removed");
}

Exit purge(const Arguments& arguments, Console& console) {
  auto session = QueueSession::open(arguments);
  if (session.has_error()) {
    return session.error();
  }
  const auto address = queue_address(arguments);
  if (Exit refused = agree(*session, address, arguments, console); refused.code() != kExitOk) {
    return refused;
  }
  const InterruptFlag interrupt;
  const auto progress = [&](std::uint64_t done) {
    console.progress(std::to_string(done) + " removed");
    return !interrupt.raised();
  };
  const auto result = session->store().purge(address, progress, kNoDeadline);
  console.end_progress();
  if (result.has_error()) {
    return Exit::failure(result.error());
  }
  JsonText json(JsonText::Layout::indented);
  json.begin_object();
  json.member("queue", address.queue);
  json.member("queue_type", queue::to_string(address.type));
  json.member("removed", result->done);
  json.member("skipped", result->skipped);
  json.end_object();
  console.out(json.take_line());
  if (interrupt.raised()) {
    return {kExitInterrupted, "interrupted; " + std::to_string(result->done) + " messages were removed"};
  }
  return Exit::ok();
}

}  // namespace

Command purge_command() {
  return {
      .name = "purge",
      .group = "Queues",
      .summary = "Remove every message of a queue",
      .usage = "--queue QUEUE [--dlq] [--yes] [--config FILE]",
      .description =
          "Asks first when there is a terminal, and wants --yes when there is none. Messages in flight go "
          "too; their handlers' outcomes are then lost. Ctrl-C ends it between two batches. Prints a JSON "
          "object with the count.",
      .flags = {{.name = "queue", .value = "QUEUE", .help = "the queue", .required = true},
                {.name = "dlq", .value = {}, .help = "its dead-letter half instead"},
                {.name = "yes", .value = {}, .help = "do not ask"},
                config_flag()},
      .examples = "sluice purge --queue orders --dlq --yes",
      .run = purge,
  };
}

}  // namespace sluice::cli
