#include "host/cli/bulk_command.hpp"
#include "host/cli/command.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

Exit reset(const Arguments& arguments, Console& console) {
  return run_bulk({.words = {.verb = "reset", .done = "reset"},
                   .work = queue::Change{.id = {}, .action = queue::ChangeAction::reset},
                   .named_in_any_state = true},
                  arguments, console);
}

}  // namespace

Command reset_command() {
  return {
      .name = "reset",
      .group = "Messages",
      .summary = "Make messages as if they had just been sent",
      .usage = "ID... | FILTER | --all [--dlq] [OPTION]...",
      .description =
          "In the standard half, wherever they were; receive count zero, no failure, all times now. Their content "
          "stays "
          "to the last digit, and their versions grow, so that whoever works on one loses it. A message that is named "
          "by its ID is reset in whatever state it is. Of one ID it prints the message.",
      .flags = with_store_flags(choice_flags()),
      .positional = {"id"},
      .examples = "sluice reset --queue orders A-101",
      .run = reset,
  };
}

}  // namespace sluice::cli
