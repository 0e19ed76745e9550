#include "host/cli/command.hpp"
#include "host/cli/single_change.hpp"

namespace sluice::cli {

namespace {

Exit reset(const Arguments& arguments, Console& console) {
  return change_message(arguments, {.id = {}, .action = queue::ChangeAction::reset}, AfterChange::show, console);
}

}  // namespace

Command reset_command() {
  return {
      .name = "reset",
      .group = "Messages",
      .summary = "Make a message as if it had just been sent",
      .usage = "--id ID [OPTION]...",
      .description =
          "In the standard half, wherever it was; receive count zero, no failure, all times now. Its content stays to "
          "the last digit, and its version grows, so that whoever works on it loses it. Prints the message.",
      .flags = with_store_flags({id_flag()}),
      .examples = "sluice reset --queue orders --id A-101",
      .run = reset,
  };
}

}  // namespace sluice::cli
