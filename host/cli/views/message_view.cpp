#include "host/cli/views/message_view.hpp"

#include <algorithm>
#include <cctype>

#include "base/text/base64.hpp"
#include "base/text/json_check.hpp"
#include "base/text/utf8.hpp"
#include "base/text/visible.hpp"

namespace sluice::cli {

namespace {

/// The body as it is when it is text, and as Base64 when it is not.
std::string body_text(const queue::Message& message) {
  if (!is_utf8(message.body)) {
    return base64(message.body) + "\n";
  }
  if (message.content_type == queue::kJson && !json_problem(message.body)) {
    JsonWriter json(JsonWriter::Layout::indented);
    json.raw(message.body);
    return json.take_line();
  }
  std::string text;
  std::string_view rest = message.body;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    append_visible(text, rest.substr(0, end));
    text += '\n';
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return text;
}

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

std::string message_text(const queue::StoredMessage& stored, WallTime now, bool colours) {
  TextTable table({{}, {}}, colours);
  for (const auto& [column, cell] : operate::row_of(stored, now)) {
    if (!cell.text.empty()) {
      std::string name(column.title);
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
      table.add({{std::move(name), Colour::dim}, cell});
    }
  }
  return table.take() + "\n" + body_text(stored.message);
}

void show_message(const queue::StoredMessage& message, Output output, WallTime now, Console& console) {
  if (output == Output::text) {
    console.out(message_text(message, now, console.output_has_colour()));
    return;
  }
  JsonWriter json(JsonWriter::Layout::indented);
  operate::write_object(json, message, now);
  console.out(json.take_line());
}

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
