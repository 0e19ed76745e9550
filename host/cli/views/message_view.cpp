#include "host/cli/views/message_view.hpp"

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
  for (const std::string& line : lines_of(message.body)) {
    text += visible(line) + "\n";
  }
  return text;
}

}  // namespace

std::string message_text(const queue::StoredMessage& stored, WallTime now, bool colours) {
  operate::Row row = operate::row_of(stored, now);
  std::erase_if(row, [](const auto& field) { return field.second.text.empty(); });
  return facts_of(row, colours, Colour::dim) + "\n" + body_text(stored.message);
}

void show_message(const queue::StoredMessage& message, Output output, WallTime now, Console& console) {
  console.out(output == Output::text ? message_text(message, now, console.output_has_colour()) : json_of(message, now));
}

}  // namespace sluice::cli
