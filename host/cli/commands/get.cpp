#include "host/cli/command.hpp"
#include "host/cli/message_ids.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/message_view.hpp"

namespace sluice::cli {

namespace {

Exit get(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(id, the_message_id(arguments));
  SLUICE_TRY(session, QueueSession::open(arguments));
  const auto message = session->oper().get(*id, session->deadline());
  if (message.has_error()) {
    return session->failure(message.error());
  }
  show_message(*message, *output, session->clock().wall_now(), console);
  return Exit::ok();
}

}  // namespace

Command get_command() {
  return {
      .name = "get",
      .group = "Messages",
      .summary = "Show one message, wherever it lies in its queue",
      .usage = "ID [OPTION]...",
      .description =
          "Prints a JSON object: body, state, times, attributes, and why it failed last. The dead-letter "
          "half is looked in too; nothing is claimed or changed.",
      .flags = with_store_flags({id_flag()}),
      .positional = {"id"},
      .examples = "sluice get --queue orders A-101",
      .run = get,
  };
}

}  // namespace sluice::cli
