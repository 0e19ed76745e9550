#include "host/cli/command.hpp"
#include "host/cli/unclaimed_change.hpp"

namespace sluice::cli {

namespace {

Exit move_to_front(const Arguments& arguments, Console& console) {
  return change_unclaimed(arguments, {.id = {}, .action = queue::ChangeAction::move_to_front}, AfterChange::show,
                          console);
}

}  // namespace

Command move_to_front_command() {
  return {
      .name = "move-to-front",
      .group = "Messages",
      .summary = "Make a message the next to be worked on",
      .usage = "--id ID [OPTION]...",
      .description =
          "It is due at once and stands before all others of its half, by an older sent_at. One in flight is left "
          "alone. Prints the message.\n\n"
          "A running host first ends what it has claimed already. On DynamoDB it then finds the message with its next "
          "look at the front: every 10 seconds, up to a minute apart where much is in flight there.",
      .flags = with_store_flags({id_flag(), force_flag()}),
      .examples = "sluice move-to-front --queue orders --id A-101",
      .run = move_to_front,
  };
}

}  // namespace sluice::cli
