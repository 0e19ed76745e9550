#include "host/cli/command.hpp"
#include "host/cli/single_change.hpp"

namespace sluice::cli {

namespace {

Exit invalid(const Arguments& arguments, Console& console) {
  queue::Change change{.id = {}, .action = queue::ChangeAction::dead_letter};
  if (arguments.has("reason")) {
    change.failure.error = arguments.get("reason");
    change.failure.failed_at = SystemClock().wall_now();
  }
  return change_message(arguments, std::move(change), AfterChange::say_nothing, console);
}

}  // namespace

Command invalid_command() {
  return {
      .name = "invalid",
      .group = "Messages",
      .summary = "Move a message to the dead-letter half",
      .usage = "--id ID [--reason TEXT] [OPTION]...",
      .description =
          "In whatever state it is; a host that works on it loses its claim. One that lies there already stays as it "
          "is. Prints nothing. `sluice redrive --id ID` brings it back.",
      .flags = with_store_flags(
          {id_flag(),
           {.name = "reason", .value = "TEXT", .help = "kept as its error [default: what it failed with last]"}}),
      .examples = "sluice invalid --queue orders --id A-101 --reason 'no such customer'",
      .run = invalid,
  };
}

}  // namespace sluice::cli
