#include "host/cli/bulk_command.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/message_ids.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

Exit redrive(const Arguments& arguments, Console& console) {
  return run_bulk({.words = {.verb = "redrive", .done = "redriven"},
                   .work = queue::Change{.id = {}, .action = queue::ChangeAction::redrive},
                   .dlq_only = true,
                   .can_be_forced = false},
                  arguments, console);
}

}  // namespace

Command redrive_command() {
  return {
      .name = "redrive",
      .group = "Messages",
      .summary = "Move messages from the dead-letter half back to work",
      .usage = "ID... | FILTER | --all [OPTION]...",
      .description =
          "They come back as newly sent: due at once, behind those that wait, with a receive count of zero. One that "
          "somebody works on in the dead-letter half stays there.\n\n"
          "Of one ID it prints the message; otherwise what became of each, or a JSON object with the ids and counts. "
          "--error takes the fingerprint that `sluice dlq` shows of a cause. Ctrl-C ends it between two batches and "
          "says how to go on.",
      .flags = with_store_flags(joined({id_flag(), all_flag()}, without_flag(bulk_flags(), "force"))),
      .positional = {"id"},
      .examples =
          "sluice redrive --queue orders A-101\n"
          "sluice redrive --queue orders --error 3f2a90c1 --rate 50/s\n"
          "sluice redrive --queue orders --error-like 'connection refused' --dry-run\n"
          "sluice redrive --queue orders --all --rate 50/s --yes",
      .run = redrive,
  };
}

}  // namespace sluice::cli
