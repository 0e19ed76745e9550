#include <span>

#include "host/cli/bulk_command.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

/// An absent message is no failure, as with DynamoMQ; but it is told.
Exit delete_one(const Arguments& arguments, Console& console) {
  auto session = QueueSession::open(arguments);
  if (session.has_error()) {
    return session.error();
  }
  const queue::Change change{.id = arguments.get("id"), .action = queue::ChangeAction::remove};
  const auto result = session->oper().change(std::span(&change, 1), session->deadline()).front();
  if (result.status == queue::ChangeStatus::not_found) {
    console.note("sluice delete: there is no message " + change.id + "; nothing was removed");
    return Exit::ok();
  }
  return result.status == queue::ChangeStatus::applied ? Exit::ok() : session->failure(result.error);
}

Exit delete_messages(const Arguments& arguments, Console& console) {
  if (!arguments.has("id")) {
    return run_bulk({.words = {.verb = "remove", .done = "removed"},
                     .work = queue::Change{.id = {}, .action = queue::ChangeAction::remove}},
                    arguments, console);
  }
  if (const std::string flag = arguments.has("dlq") ? "dlq" : bulk_flag_given(arguments); !flag.empty()) {
    return Exit::usage("--id and --" + flag + " exclude each other; give one");
  }
  return delete_one(arguments, console);
}

}  // namespace

Command delete_command() {
  return {
      .name = "delete",
      .group = "Messages",
      .summary = "Remove messages for good",
      .usage = "--id ID | FILTER | --all [--dlq] [OPTION]...",
      .description =
          "With --id it removes that message in whatever state and half it is, and prints nothing; `sluice cancel` "
          "spares one that is in flight. With a filter it removes what matches and is not in flight, and prints a "
          "JSON object with the ids and counts; Ctrl-C ends it between two batches and says how to go on.",
      .flags = with_store_flags(
          joined({{.name = "id", .value = "ID", .help = "this message alone"}, dlq_flag(), all_flag()}, bulk_flags())),
      .examples =
          "sluice delete --queue orders --id A-101\n"
          "sluice delete --queue orders --where 'attributes.tenant = \"acme\"' --dry-run",
      .run = delete_messages,
  };
}

}  // namespace sluice::cli
