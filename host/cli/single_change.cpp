#include "host/cli/single_change.hpp"

#include <span>
#include <utility>

#include "host/cli/message_text.hpp"

namespace sluice::cli {

Flag id_flag() { return {.name = "id", .value = "ID", .help = "the message", .required = true}; }

Exit change_message(const Arguments& arguments, queue::Change change, AfterChange after, Console& console) {
  const auto output = arguments.output();
  if (output.has_error()) {
    return output.error();
  }
  auto session = QueueSession::open(arguments);
  if (session.has_error()) {
    return session.error();
  }
  change.id = arguments.get("id");
  return apply_change(*session, change, after, *output, console);
}

Exit apply_change(QueueSession& session, const queue::Change& change, AfterChange after, Output output,
                  Console& console) {
  const auto result = session.oper().change(std::span(&change, 1), session.deadline()).front();
  if (result.status != queue::ChangeStatus::applied) {
    return session.failure(result.error);
  }
  if (after == AfterChange::say_nothing) {
    return Exit::ok();
  }
  const auto changed = session.oper().get(change.id, session.deadline());
  if (changed.has_error()) {
    return session.failure(changed.error());
  }
  show_message(*changed, output, session.clock().wall_now(), console);
  return Exit::ok();
}

}  // namespace sluice::cli
