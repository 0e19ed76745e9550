#include "host/cli/bulk_command.hpp"
#include "host/cli/command.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

Exit cancel(const Arguments& arguments, Console& console) {
  return run_bulk({.words = {.verb = "cancel", .done = "canceled"},
                   .work = queue::Change{.id = {}, .action = queue::ChangeAction::remove},
                   .can_be_forced = false,
                   .shows_message = false},
                  arguments, console);
}

}  // namespace

Command cancel_command() {
  return {
      .name = "cancel",
      .group = "Messages",
      .summary = "Remove messages that no handler works on",
      .usage = "ID... | FILTER | --all [--dlq] [OPTION]...",
      .description =
          "For messages that wait or are delayed. One in flight is left alone, and so is one that a handler takes at "
          "this moment; for a message that is named by its ID the exit code is then 1.",
      .flags = with_store_flags(without_flag(choice_flags(), "force")),
      .positional = {"id"},
      .examples = "sluice cancel --queue orders A-101",
      .run = cancel,
  };
}

}  // namespace sluice::cli
