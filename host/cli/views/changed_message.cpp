#include "host/cli/views/changed_message.hpp"

#include "base/text/json_writer.hpp"
#include "base/text/visible.hpp"
#include "host/cli/views/message_text.hpp"

namespace sluice::cli {

namespace {

void say(const BulkOrder& order, const std::string& id, Output output, Console& console) {
  if (output == Output::text) {
    std::string line(order.words.done);
    line += "  ";
    append_visible(line, id);
    console.out(line + "\n");
  } else if (!order.shows_message) {
    JsonWriter json(JsonWriter::Layout::indented);
    json.begin_object();
    json.member("id", id);
    json.member("result", order.words.done);
    json.end_object();
    console.out(json.take_line());
  }
}

}  // namespace

Exit show_changed(QueueSession& session, const BulkOrder& order, const operate::BulkOutcome& outcome, Output output,
                  Console& console) {
  if (outcome.was_in_flight && !order.any_state) {
    console.note("warning: message " + outcome.id +
                 " was in flight; whoever works on it has lost it, and what he comes to counts for nothing");
  }
  say(order, outcome.id, output, console);
  if (!order.shows_message) {
    return Exit::ok();
  }
  const auto changed = session.oper().get(outcome.id, session.deadline());
  if (changed.has_error() && changed.error().code() == ErrorCode::not_found) {
    // The change took effect; a host that is at work was quicker than this look.
    console.note("message " + outcome.id + " is gone again: it has been worked off meanwhile");
    return Exit::ok();
  }
  if (changed.has_error()) {
    return session.failure(changed.error());
  }
  if (output == Output::text) {
    console.out("\n");
  }
  show_message(*changed, output, session.clock().wall_now(), console);
  return Exit::ok();
}

}  // namespace sluice::cli
