#include "host/cli/command.hpp"
#include "host/cli/drop_in/dynamomq_operations.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"

namespace sluice::cli {

namespace {

Exit enqueue_test(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(session, QueueSession::open(arguments));
  const BulkOutcome outcome = DynamoMqOperations(*session).enqueue_test();
  if (*output == Output::text) {
    TextTable table({{.title = "ID"}, {.title = "RESULT"}}, console.output_has_colour());
    for (const std::string& id : outcome.successes) {
      table.add({id, {"sent", Colour::green}});
    }
    for (const auto& failed : outcome.failures) {
      table.add({failed.id, {failed.error, Colour::red}});
    }
    console.out(table.take());
  } else {
    JsonWriter json(JsonWriter::Layout::indented);
    write_outcome(json, outcome, false, false);
    console.out(json.take_line());
  }
  if (outcome.failures.empty()) {
    return Exit::ok();
  }
  return Exit::failure(std::to_string(outcome.failures.size()) + " of 4 messages were not sent; the first, " +
                       outcome.failures.front().id + ": " + outcome.failures.front().error);
}

}  // namespace

Command enqueue_test_command() {
  return {
      .name = "enqueue-test",
      .group = "Queues",
      .summary = "Put four test messages into a queue",
      .usage = "[OPTION]...",
      .description =
          "Their ids are A-101, A-202, A-303 and A-404; messages that have these ids are replaced. Prints which were "
          "sent.",
      .flags = with_store_flags({}),
      .examples = "sluice enqueue-test --queue playground",
      .run = enqueue_test,
  };
}

}  // namespace sluice::cli
