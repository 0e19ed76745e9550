#include <utility>

#include "host/cli/bulk_command.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

Exit invalid(const Arguments& arguments, Console& console) {
  queue::Change change{.id = {}, .action = queue::ChangeAction::dead_letter};
  if (arguments.has("reason")) {
    change.failure.error = arguments.get("reason");
    change.failure.failed_at = SystemClock().wall_now();
  }
  return run_bulk({.words = {.verb = "dead-letter", .done = "dead-lettered"},
                   .work = std::move(change),
                   .named_in_any_state = true,
                   .shows_message = false},
                  arguments, console);
}

}  // namespace

Command invalid_command() {
  return {
      .name = "invalid",
      .group = "Messages",
      .summary = "Move messages to the dead-letter half",
      .usage = "ID... | FILTER | --all [--reason TEXT] [OPTION]...",
      .description =
          "A message that is named by its ID moves in whatever state it is; a host that works on it loses its claim. "
          "With a filter those in flight stay. One that lies there already stays as it is. `sluice redrive ID` brings "
          "it back.",
      .flags = with_store_flags(
          joined({{.name = "reason", .value = "TEXT", .help = "kept as its error [default: what it failed with last]"}},
                 without_flag(choice_flags(), "dlq"))),
      .positional = {"id"},
      .examples = "sluice invalid --queue orders A-101 --reason 'no such customer'",
      .run = invalid,
  };
}

}  // namespace sluice::cli
