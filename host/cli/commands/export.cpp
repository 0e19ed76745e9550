#include "host/cli/bulk_command.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/queue_session.hpp"
#include "host/operate/copy.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kMaxLimit = 1'000'000'000;

OrExit<std::vector<queue::Half>> named_halves(const Arguments& arguments) {
  using queue::Half;
  if (arguments.has("both") && arguments.has("dlq")) {
    return Exit::usage("--both and --dlq exclude each other; give one");
  }
  if (arguments.has("both")) {
    return std::vector<Half>{Half::standard, Half::dlq};
  }
  return std::vector<Half>{arguments.has("dlq") ? Half::dlq : Half::standard};
}

std::string records(std::uint64_t count) { return std::to_string(count) + (count == 1 ? " record" : " records"); }

Exit run_export(operate::Exporter& exporter, QueueSession& session, Console& console) {
  const InterruptFlag interrupt;
  std::string lines;
  for (bool more = true; more && console.writable();) {
    if (interrupt.raised()) {
      return {kExitInterrupted, "interrupted after " + records(exporter.exported()) +
                                    "; what is written is whole lines, and the rest is missing: run it again"};
    }
    const auto step = exporter.step(lines, session.deadline());
    console.out(lines);
    console.flush();
    lines.clear();
    if (step.has_error()) {
      return Exit::failure(session.explained(step.error()) + "; " + records(exporter.exported()) +
                           " are written, the rest is missing: run it again");
    }
    more = *step;
    if (!console.output_is_terminal()) {
      console.progress(records(exporter.exported()) + " exported");
    }
  }
  return Exit::ok();
}

Exit export_queue(const Arguments& arguments, Console& console) {
  SLUICE_TRY(halves, named_halves(arguments));
  SLUICE_TRY(limit, arguments.count("limit", 0, kMaxLimit));
  SLUICE_TRY(filter, parse_filter(arguments));
  SLUICE_TRY(session, QueueSession::open(arguments));
  operate::Exporter::Options options{
      .halves = std::move(*halves), .wanted = {}, .limit = *limit, .consistent = arguments.has("consistent")};
  if (!filter->empty()) {
    options.wanted = [&](const queue::StoredMessage& record) {
      return filter->matches(record, session->clock().wall_now());
    };
  }
  operate::Exporter exporter(session->oper(), std::move(options));
  Exit exit = run_export(exporter, *session, console);
  console.end_progress();
  if (const auto cost = session->cost(); cost && console.output_failure() == 0) {
    console.note("exported " + records(exporter.exported()) +
                 "; DynamoDB: " + cost->text(exporter.exported(), "record"));
  }
  return exit;
}

}  // namespace

Command export_command() {
  return {
      .name = "export",
      .group = "Queues",
      .summary = "Write a queue's records as lines of JSON, for `sluice import`",
      .usage = "--queue QUEUE [--dlq | --both] [OPTION]...",
      .description =
          "Each line is a whole record: body, attributes, times to the nanosecond, counts, version, failure, and "
          "\"item\", the record as DynamoDB JSON, where it holds sets, binary or attributes that nobody here knows. "
          "Nothing is claimed or changed.\n\n"
          "What is sent, worked on or moved meanwhile may be missing or come twice; stop hosts and producers for an "
          "exact copy. On DynamoDB only items that the index shows are records; it lags behind writes, by "
          "seconds at worst, and --consistent reads the whole table instead, in no order.",
      .flags = with_store_flags(joined({{.name = "dlq", .value = {}, .help = "the dead-letter half instead"},
                                        {.name = "both", .value = {}, .help = "both halves, the dead-letter half last"},
                                        {.name = "limit", .value = "N", .help = "write at most N records"},
                                        consistent_flag()},
                                       filter_flags())),
      .examples =
          "sluice export --queue orders --both > orders.jsonl\n"
          "sluice export --queue a --config here.toml |\n"
          "  sluice import --queue a --config there.toml -",
      .run = export_queue,
  };
}

}  // namespace sluice::cli
