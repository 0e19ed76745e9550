#include "host/cli/message_json.hpp"

#include "base/timestamp.hpp"
#include "host/observe/escape.hpp"

namespace sluice::cli {

namespace {

std::string time_text(const std::optional<WallTime>& time) { return time ? format_timestamp(*time) : std::string(); }

void write_failure(JsonText& json, const queue::Failure& failure) {
  json.key("failure");
  json.begin_object();
  json.member("error", failure.error);
  json.member("attempts", std::uint64_t{failure.attempts});
  json.member("handler", failure.handler);
  json.member("host", failure.host);
  json.member("failed_at", format_timestamp(failure.failed_at));
  json.end_object();
}

}  // namespace

std::string_view to_string(queue::MessageState state) {
  switch (state) {
    case queue::MessageState::ready:
      return "ready";
    case queue::MessageState::in_flight:
      return "in_flight";
    case queue::MessageState::delayed:
      break;
  }
  return "delayed";
}

void MessageJson::write(JsonText& json, const queue::StoredMessage& stored, WallTime now) {
  const queue::Message& message = stored.message;
  json.begin_object();
  json.member("id", message.id);
  write_body(json, message);
  json.member("receive_count", std::uint64_t{message.attempt});
  json.member("queue_type", queue::to_string(stored.queue_type));
  json.member("version", stored.version);
  json.member("created_at", format_timestamp(stored.created_at));
  json.member("updated_at", format_timestamp(stored.updated_at));
  json.member("sent_at", format_timestamp(message.sent_at));
  json.member("received_at", time_text(stored.received_at));
  json.member("invisible_until_at", time_text(stored.invisible_until));
  json.member("state", to_string(stored.state(now)));
  json.member("content_type", message.content_type);
  json.key("attributes");
  json.begin_object();
  for (const auto& [name, value] : message.attributes) {
    json.member(name, value);
  }
  json.end_object();
  if (!message.group.empty()) {
    json.member("group", message.group);
  }
  if (!stored.failure.empty()) {
    write_failure(json, stored.failure);
  }
  json.end_object();
}

void MessageJson::write_body(JsonText& json, const queue::Message& message) {
  json.key("data");
  if (message.content_type == queue::kJson && !checker_.problem(message.body)) {
    json.raw(message.body);
  } else if (observe::is_utf8(message.body)) {
    json.value(message.body);
  } else {
    json.value(base64(message.body));
    json.member("data_encoding", "base64");
  }
}

}  // namespace sluice::cli
