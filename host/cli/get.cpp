#include "host/cli/command.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/message_json.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

Exit get(const Arguments& arguments, Console& console) {
  auto session = QueueSession::open(arguments);
  if (session.has_error()) {
    return session.error();
  }
  const auto message = session->store().get(arguments.get("queue"), arguments.get("id"), session->deadline());
  if (message.has_error()) {
    return Exit::failure(message.error());
  }
  JsonText json(JsonText::Layout::indented);
  MessageJson().write(json, *message, session->clock().wall_now());
  console.out(json.take_line());
  return Exit::ok();
}

}  // namespace

Command get_command() {
  return {
      .name = "get",
      .group = "Queues",
      .summary = "Show one message, wherever it lies in its queue",
      .usage = "--queue QUEUE --id ID [--config FILE]",
      .description =
          "Prints a JSON object: body, state, times, attributes, and why it failed last. The dead-letter "
          "half is looked in too; nothing is claimed or changed.",
      .flags = {{.name = "queue", .value = "QUEUE", .help = "the queue", .required = true},
                {.name = "id", .value = "ID", .help = "the message", .required = true},
                config_flag()},
      .examples = "sluice get --queue orders --id A-101",
      .run = get,
  };
}

}  // namespace sluice::cli
