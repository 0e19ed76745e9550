#include "host/cli/command.hpp"
#include "host/cli/unclaimed_change.hpp"

namespace sluice::cli {

namespace {

Exit delay(const Arguments& arguments, Console& console) {
  const auto span = arguments.duration("for", Duration{});
  if (span.has_error()) {
    return span.error();
  }
  return change_unclaimed(arguments, {.id = {}, .action = queue::ChangeAction::delay, .version = {}, .after = *span},
                          AfterChange::show, console);
}

}  // namespace

Command delay_command() {
  return {
      .name = "delay",
      .group = "Messages",
      .summary = "Put a message off",
      .usage = "--id ID --for TIME [OPTION]...",
      .description =
          "The message is not due before that time, as if it were sent now with a delay; its receive count stays. One "
          "in flight is left alone. Prints the message.",
      .flags = with_store_flags({id_flag(),
                                 {.name = "for", .value = "TIME", .help = "from now on, such as 10m", .required = true},
                                 force_flag()}),
      .examples = "sluice delay --queue orders --id A-101 --for 10m",
      .run = delay,
  };
}

}  // namespace sluice::cli
