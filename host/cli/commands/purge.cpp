#include "host/cli/bulk_command.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/message_ids.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

Exit purge(const Arguments& arguments, Console& console) {
  return run_bulk({.words = {.verb = "remove", .done = "removed"},
                   .work = queue::Change{.id = {}, .action = queue::ChangeAction::remove},
                   .takes_all = true,
                   .named_in_any_state = true,
                   .shows_message = false,
                   .absent_is_success = true},
                  arguments, console);
}

}  // namespace

Command purge_command() {
  return {
      .name = "purge",
      .group = "Queues",
      .summary = "Remove every message of a queue",
      .usage = "[ID... | FILTER] [--dlq] [--yes] [OPTION]...",
      .description =
          "Asks first when there is a terminal, and wants --yes when there is none. Messages in flight go too; their "
          "handlers' outcomes are then lost. With a filter only what matches goes, and what is in flight stays unless "
          "there is --force. What is sent meanwhile stays, and so does what moves to the other half before its "
          "turn. On DynamoDB it sees what the index "
          "shows, which lags behind writes, by seconds at worst; --consistent reads the whole table instead. With IDs "
          "it "
          "removes these alone and asks nothing, as `sluice delete` does.\n\n"
          "Prints a JSON object with the ids and counts. Ctrl-C ends it between two batches and says how to go on.",
      .flags = with_store_flags(joined({id_flag(), dlq_flag()}, bulk_flags())),
      .positional = {"id"},
      .examples =
          "sluice purge --queue orders --dlq --yes\n"
          "sluice purge --queue orders --dlq --older-than 30d --dry-run\n"
          "sluice purge --queue orders --where 'data.type = \"test\"' --rate 100/s --yes",
      .run = purge,
  };
}

}  // namespace sluice::cli
