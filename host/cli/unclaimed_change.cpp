#include "host/cli/unclaimed_change.hpp"

#include <utility>

#include "base/timestamp.hpp"

namespace sluice::cli {

Flag force_flag() {
  return {.name = "force", .value = {}, .help = "even while a handler works on it; the handler then loses it"};
}

OrExit<queue::StoredMessage> get_unclaimed(QueueSession& session, const Arguments& arguments, Force force) {
  auto found = session.oper().get(arguments.get("id"), session.deadline());
  if (found.has_error()) {
    return session.failure(found.error());
  }
  const bool in_flight = found->state(session.clock().wall_now()) == queue::MessageState::in_flight;
  if (in_flight && !arguments.has("force")) {
    return Exit::failure("message " + found->message.id + " is in flight until " +
                         format_timestamp(*found->invisible_until) + "; wait for its handler" +
                         std::string(force == Force::allowed ? ", or add --force" : ""));
  }
  return std::move(*found);
}

Exit change_unclaimed(const Arguments& arguments, queue::Change change, AfterChange after, Console& console,
                      Force force) {
  const auto output = arguments.output();
  if (output.has_error()) {
    return output.error();
  }
  auto session = QueueSession::open(arguments);
  if (session.has_error()) {
    return session.error();
  }
  const auto found = get_unclaimed(*session, arguments, force);
  if (found.has_error()) {
    return found.error();
  }
  change.id = found->message.id;
  change.version = found->version;
  return apply_change(*session, change, after, *output, console);
}

}  // namespace sluice::cli
