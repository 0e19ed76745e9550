#include "host/cli/command.hpp"
#include "host/cli/views/queue_report.hpp"

namespace sluice::cli {

namespace {

std::string as_text(const QueueReport& report, WallTime now, bool colours) {
  const std::uint64_t total = report.dlq.counts.total();
  std::string text = std::to_string(total) + (total == 1 ? " message" : " messages") +
                     " in the dead-letter half of queue " + report.queue + "\n";
  text += read_units_text({report});
  const std::string errors = error_table(report.dlq, now, colours);
  return errors.empty() ? text : text + "\n" + errors;
}

Exit dlq(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(session, QueueSession::open(arguments));
  SLUICE_TRY(report, read_report(*session, session->queue(), Halves::dlq, true));
  if (*output == Output::text) {
    console.out(as_text(*report, session->clock().wall_now(), console.output_has_colour()));
    return Exit::ok();
  }
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  write_dlq_stats(json, report->dlq);
  json.member("queue", report->queue);
  write_errors(json, "dlq_errors", report->dlq);
  write_read_units(json, *report);
  json.end_object();
  console.out(json.take_line());
  return Exit::ok();
}

}  // namespace

Command dlq_command() {
  return {
      .name = "dlq",
      .group = "Queues",
      .summary = "Count what lies in the dead-letter half, and why",
      .usage = "[OPTION]...",
      .description =
          "Prints the first hundred ids, the total, and the causes of their failures: errors that differ in numbers, "
          "ids, addresses and paths alone are one. Of each cause it says how many there are, when, by which handler "
          "and on which host, and its fingerprint: `sluice redrive --error FINGERPRINT` brings back what failed for "
          "it, `sluice ls --dlq --error FINGERPRINT` lists it.",
      .flags = with_store_flags({}),
      .examples = "sluice dlq --queue orders --output text",
      .run = dlq,
  };
}

}  // namespace sluice::cli
