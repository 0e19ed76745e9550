#include "host/cli/bulk_command.hpp"
#include "host/cli/command.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

Exit move_to_front(const Arguments& arguments, Console& console) {
  return run_bulk({.words = {.verb = "move to the front", .done = "moved to the front"},
                   .work = queue::Change{.id = {}, .action = queue::ChangeAction::move_to_front}},
                  arguments, console);
}

}  // namespace

Command move_to_front_command() {
  return {
      .name = "move-to-front",
      .group = "Messages",
      .summary = "Make messages the next to be worked on",
      .usage = "ID... | FILTER | --all [--dlq] [OPTION]...",
      .description =
          "They are due at once and stand before all others of their half, by an older sent_at. What is in flight is "
          "left alone. Of one ID it prints the message.\n\n"
          "A running host first ends what it has claimed already. On DynamoDB it then finds the message with its next "
          "look at the front, within a second.",
      .flags = with_store_flags(choice_flags()),
      .positional = {"id"},
      .examples = "sluice move-to-front --queue orders A-101",
      .run = move_to_front,
  };
}

}  // namespace sluice::cli
