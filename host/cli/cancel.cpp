#include "host/cli/command.hpp"
#include "host/cli/unclaimed_change.hpp"

namespace sluice::cli {

namespace {

Exit cancel(const Arguments& arguments, Console& console) {
  return change_unclaimed(arguments, {.id = {}, .action = queue::ChangeAction::remove}, AfterChange::say_nothing,
                          console, Force::never);
}

}  // namespace

Command cancel_command() {
  return {
      .name = "cancel",
      .group = "Messages",
      .summary = "Remove a message that no handler works on",
      .usage = "--id ID [OPTION]...",
      .description =
          "For a message that waits or is delayed. One in flight is left alone, and so is one that a handler takes at "
          "this moment; the exit code is then 1. Prints nothing.",
      .flags = with_store_flags({id_flag()}),
      .examples = "sluice cancel --queue orders --id A-101",
      .run = cancel,
  };
}

}  // namespace sluice::cli
