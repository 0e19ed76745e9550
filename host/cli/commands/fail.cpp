#include "host/cli/bulk_command.hpp"
#include "host/cli/command.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

Exit fail(const Arguments& arguments, Console& console) {
  return run_bulk({.words = {.verb = "give back", .done = "given back"},
                   .work = queue::Change{.id = {}, .action = queue::ChangeAction::set_visibility},
                   .any_state = true},
                  arguments, console);
}

}  // namespace

Command fail_command() {
  return {
      .name = "fail",
      .group = "Messages",
      .summary = "Give messages back, so that they are due at once",
      .usage = "ID... | FILTER | --all [--dlq] [OPTION]...",
      .description =
          "For messages that were received, or that wait for their next attempt. Receive count and place in the queue "
          "stay. A host that works on one loses its claim. Of one ID it prints the message.",
      .flags = with_store_flags(without_flag(choice_flags(), "force")),
      .positional = {"id"},
      .examples =
          "sluice fail --queue orders A-101\n"
          "sluice fail --queue orders --where 'state = \"delayed\"' --yes",
      .run = fail,
  };
}

}  // namespace sluice::cli
