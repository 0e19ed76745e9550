#include "host/cli/bulk_command.hpp"
#include "host/cli/command.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

/// An absent message is no failure, as with DynamoMQ; but it is told.
Exit delete_messages(const Arguments& arguments, Console& console) {
  return run_bulk({.words = {.verb = "remove", .done = "removed"},
                   .work = queue::Change{.id = {}, .action = queue::ChangeAction::remove},
                   .named_in_any_state = true,
                   .shows_message = false,
                   .absent_is_success = true},
                  arguments, console);
}

}  // namespace

Command delete_command() {
  return {
      .name = "delete",
      .group = "Messages",
      .summary = "Remove messages for good",
      .usage = "ID... | FILTER | --all [--dlq] [OPTION]...",
      .description =
          "A message that is named by its ID goes in whatever state and half it is, with a warning where somebody "
          "works "
          "on it; `sluice cancel` spares one that is in flight. With a filter it removes what matches and is not in "
          "flight. Says what became of each, or prints a JSON object with the ids and counts; Ctrl-C ends it between "
          "two batches and says how to go on.",
      .flags = with_store_flags(choice_flags()),
      .positional = {"id"},
      .examples =
          "sluice delete --queue orders A-101\n"
          "sluice delete --queue orders --where 'attributes.tenant = \"acme\"' --dry-run",
      .run = delete_messages,
  };
}

}  // namespace sluice::cli
