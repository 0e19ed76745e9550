#include "host/cli/bulk_command.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/single_change.hpp"

namespace sluice::cli {

namespace {

Exit redrive(const Arguments& arguments, Console& console) {
  const queue::Change change{.id = {}, .action = queue::ChangeAction::redrive};
  if (!arguments.has("id")) {
    return run_bulk({.words = {.verb = "redrive", .done = "redriven"}, .work = change, .dlq_only = true}, arguments,
                    console);
  }
  if (const std::string flag = arguments.has("force") ? "force" : bulk_flag_given(arguments); !flag.empty()) {
    return Exit::usage("--id and --" + flag + " exclude each other; give one");
  }
  return change_message(arguments, change, AfterChange::show, console);
}

}  // namespace

Command redrive_command() {
  return {
      .name = "redrive",
      .group = "Messages",
      .summary = "Move messages from the dead-letter half back to work",
      .usage = "--id ID | FILTER | --all [OPTION]...",
      .description =
          "They come back as newly sent: due at once, behind those that wait, with a receive count of zero. One that "
          "somebody works on in the dead-letter half stays there.\n\n"
          "With --id it prints the message; otherwise a JSON object with the ids and counts. Ctrl-C ends it between "
          "two batches and says how to go on.",
      .flags = with_store_flags(
          joined({{.name = "id", .value = "ID", .help = "this message alone"}, all_flag()}, bulk_flags())),
      .examples =
          "sluice redrive --queue orders --id A-101\n"
          "sluice redrive --queue orders --error-like 'connection refused' --dry-run\n"
          "sluice redrive --queue orders --all --rate 50/s --yes",
      .run = redrive,
  };
}

}  // namespace sluice::cli
