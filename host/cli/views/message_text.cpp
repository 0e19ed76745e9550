#include "host/cli/views/message_text.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text/base64.hpp"
#include "base/text/json_check.hpp"
#include "base/text/utf8.hpp"
#include "base/text/visible.hpp"
#include "base/timestamp.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kWidestError = 60;
constexpr std::size_t kWidestId = 40;  // a UUID, and a little more

Colour colour_of(queue::MessageState state) {
  switch (state) {
    case queue::MessageState::ready:
      return Colour::green;
    case queue::MessageState::in_flight:
      return Colour::yellow;
    case queue::MessageState::delayed:
      break;
  }
  return Colour::dim;
}

std::string ago(WallTime time, WallTime now) {
  return time > now ? "in " + short_duration(time - now) : short_duration(now - time) + " ago";
}

/// "250ms", and from a second on whole seconds or more.
std::string span_text(Duration span) {
  const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
  return span < std::chrono::seconds(1) ? std::to_string(count) + "ms" : short_duration(span);
}

std::string when(WallTime time, WallTime now) { return format_timestamp(time) + " (" + ago(time, now) + ")"; }

/// ", took 2s, to be tried again after 30s", as far as it is known.
std::string spans_text(Duration wait, Duration took) {
  std::string text = took > Duration::zero() ? ", took " + span_text(took) : std::string();
  return wait > Duration::zero() ? text + ", tried again after " + span_text(wait) : text;
}

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

}  // namespace

MessageTable::MessageTable(bool colours)
    : table_({{.title = "ID", .right = false, .widest = kWidestId},
              {.title = "STATE"},
              {.title = "HALF"},
              {.title = "RECEIVES", .right = true},
              {.title = "AGE", .right = true},
              {.title = "ERROR", .right = false, .widest = kWidestError}},
             colours) {}

void MessageTable::add(const queue::StoredMessage& stored, WallTime now) {
  const auto state = stored.state(now);
  table_.add({stored.message.id,
              {std::string(to_string(state)), colour_of(state)},
              half_text(stored),
              std::to_string(stored.message.attempt),
              stored.created_at == WallTime{} ? std::string("?") : short_duration(now - stored.created_at),
              {stored.failure.error, Colour::red}});
}

std::string message_text(const queue::StoredMessage& stored, WallTime now, bool colours) {
  const queue::Message& message = stored.message;
  const auto state = stored.state(now);
  TextTable table({{}, {}}, colours);
  const auto row = [&table](const char* name, std::string value, Colour colour = Colour::none) {
    if (!value.empty()) {
      table.add({{name, Colour::dim}, {std::move(value), colour}});
    }
  };
  row("id", message.id);
  row("state", std::string(to_string(state)), colour_of(state));
  row("half", half_text(stored));
  row("receives", std::to_string(message.attempt));
  row("version", std::to_string(stored.version));
  const auto time = [&stored, now](std::string_view name, WallTime at) {
    const auto odd = stored.odd.find(name);
    return odd == stored.odd.end() ? when(at, now) : odd->second;
  };
  row("created", time("created_at", stored.created_at));
  row("updated", time("updated_at", stored.updated_at));
  row("sent", time("sent_at", message.sent_at));
  if (stored.received_at) {
    row("received", when(*stored.received_at, now));
  }
  if (stored.invisible_until && *stored.invisible_until >= now) {
    row("hidden until", when(*stored.invisible_until, now));
  }
  if (!message.group.empty()) {
    row("group", message.group);
  }
  if (message.priority != queue::Priority::normal) {
    row("priority", std::string(to_string(message.priority)));
  }
  for (const auto& [name, value] : message.attributes) {
    row("attribute", name + " = " + value);
  }
  const queue::Failure& failure = stored.failure;
  if (!failure.empty()) {
    row("error", failure.error, Colour::red);
    row("attempts", failure.attempts == 0 ? std::string() : std::to_string(failure.attempts));
    row("handler", failure.handler);
    row("host", failure.host);
    row("failed", when(failure.failed_at, now) + spans_text(failure.wait, failure.took));
    for (const queue::FailedAttempt& attempt : failure.earlier) {
      row("before", "attempt " + std::to_string(attempt.attempt) + " on " + attempt.host + ", " +
                        ago(attempt.failed_at, now) + spans_text(attempt.wait, attempt.took) + ": " + attempt.error);
    }
  }
  row("content type", message.content_type + ", " + std::to_string(message.body.size()) +
                          (message.body.size() == 1 ? " byte" : " bytes"));
  return table.take() + "\n" + body_text(message);
}

void show_message(const queue::StoredMessage& message, Output output, WallTime now, Console& console) {
  if (output == Output::text) {
    console.out(message_text(message, now, console.output_has_colour()));
    return;
  }
  JsonWriter json(JsonWriter::Layout::indented);
  MessageJson().write(json, message, now);
  console.out(json.take_line());
}

}  // namespace sluice::cli
