#include "host/cli/bulk_command.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

Exit delay(const Arguments& arguments, Console& console) {
  SLUICE_TRY(span, arguments.duration("for", Duration{}));
  return run_bulk(
      {.words = {.verb = "delay", .done = "delayed"},
       .work = queue::Change{.id = {}, .action = queue::ChangeAction::delay, .version = {}, .after = *span}},
      arguments, console);
}

}  // namespace

Command delay_command() {
  return {
      .name = "delay",
      .group = "Messages",
      .summary = "Put messages off",
      .usage = "ID... | FILTER | --all --for TIME [--dlq] [OPTION]...",
      .description =
          "They are not due before that time, as if they were sent now with a delay; receive counts stay. What is in "
          "flight is left alone. Of one ID it prints the message.",
      .flags = with_store_flags(joined(
          {{.name = "for", .value = "TIME", .help = "from now on, such as 10m", .required = true}}, choice_flags())),
      .positional = {"id"},
      .examples = "sluice delay --queue orders A-101 --for 10m",
      .run = delay,
  };
}

}  // namespace sluice::cli
