#include "host/cli/command.hpp"
#include "host/cli/single_change.hpp"

namespace sluice::cli {

namespace {

Exit fail(const Arguments& arguments, Console& console) {
  return change_message(arguments, {.id = {}, .action = queue::ChangeAction::set_visibility}, AfterChange::show,
                        console);
}

}  // namespace

Command fail_command() {
  return {
      .name = "fail",
      .group = "Messages",
      .summary = "Give a message back, so that it is due at once",
      .usage = "--id ID [OPTION]...",
      .description =
          "For a message that was received, or that waits for its next attempt. Its receive count and its place in the "
          "queue stay. A host that works on it loses its claim. Prints the message.",
      .flags = with_store_flags({id_flag()}),
      .examples = "sluice fail --queue orders --id A-101",
      .run = fail,
  };
}

}  // namespace sluice::cli
