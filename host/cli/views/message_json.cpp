#include "host/cli/views/message_json.hpp"

#include "base/text/base64.hpp"
#include "base/text/json_check.hpp"
#include "base/text/utf8.hpp"
#include "base/timestamp.hpp"

namespace sluice::cli {

namespace {

void write_spans(JsonWriter& json, Duration wait, Duration took) {
  const auto count = [](Duration span) { return std::chrono::duration_cast<std::chrono::milliseconds>(span).count(); };
  if (count(wait) > 0) {
    json.member("wait_ms", std::int64_t{count(wait)});
  }
  if (count(took) > 0) {
    json.member("took_ms", std::int64_t{count(took)});
  }
}

void write_attempt(JsonWriter& json, const queue::FailedAttempt& attempt) {
  json.begin_object();
  json.member("error", attempt.error);
  json.member("attempt", std::uint64_t{attempt.attempt});
  json.member("host", attempt.host);
  json.member("failed_at", format_timestamp(attempt.failed_at));
  write_spans(json, attempt.wait, attempt.took);
  json.end_object();
}

void write_failure(JsonWriter& json, const queue::Failure& failure) {
  json.key("failure");
  json.begin_object();
  json.member("error", failure.error);
  json.member("attempts", std::uint64_t{failure.attempts});
  json.member("handler", failure.handler);
  json.member("host", failure.host);
  json.member("failed_at", format_timestamp(failure.failed_at));
  write_spans(json, failure.wait, failure.took);
  if (!failure.earlier.empty()) {
    json.key("earlier");
    json.begin_array();
    for (const queue::FailedAttempt& attempt : failure.earlier) {
      write_attempt(json, attempt);
    }
    json.end_array();
  }
  json.end_object();
}

/// As Go's RFC3339Nano: no zeros at the end of the fraction, and no fraction when it is zero.
std::string without_trailing_zeros(std::string time) {
  time.pop_back();
  time.erase(time.find_last_not_of('0') + 1);
  if (time.back() == '.') {
    time.pop_back();
  }
  return time + 'Z';
}

}  // namespace

std::string_view dynamomq_status(const queue::StoredMessage& message, WallTime now) {
  return message.invisible_until && now <= *message.invisible_until ? "PROCESSING" : "READY";
}

std::string half_text(const queue::StoredMessage& message) {
  const auto odd = message.odd.find("queue_type");
  return odd == message.odd.end() ? std::string(queue::to_string(message.half)) : odd->second;
}

void MessageJson::write(JsonWriter& json, const queue::StoredMessage& stored, WallTime now) {
  const queue::Message& message = stored.message;
  json.begin_object();
  json.member("id", message.id);
  write_body(json, message);
  write_record(json, stored);
  if (keys_ == Keys::dynamomq) {
    json.end_object();
    return;
  }
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
  if (message.priority != queue::Priority::normal) {
    json.member("priority", to_string(message.priority));
  }
  if (!stored.failure.empty()) {
    write_failure(json, stored.failure);
  }
  json.end_object();
}

void MessageJson::write_record(JsonWriter& json, const queue::StoredMessage& stored) const {
  json.member("receive_count", std::uint64_t{stored.message.attempt});
  json.member("queue_type", half_text(stored));
  json.member("version", stored.version);
  write_time(json, stored, "created_at", stored.created_at);
  write_time(json, stored, "updated_at", stored.updated_at);
  write_time(json, stored, "sent_at", stored.message.sent_at);
  write_time(json, stored, "received_at", stored.received_at);
  write_time(json, stored, "invisible_until_at", stored.invisible_until);
}

void MessageJson::write_system_info(JsonWriter& json, const queue::StoredMessage& stored, WallTime now) const {
  json.begin_object();
  json.member("id", stored.message.id);
  json.member("status", dynamomq_status(stored, now));
  write_record(json, stored);
  json.end_object();
}

void MessageJson::write_status(JsonWriter& json, const queue::StoredMessage& stored, WallTime now) const {
  json.begin_object();
  json.member("id", stored.message.id);
  if (keys_ == Keys::dynamomq) {
    json.member("status", dynamomq_status(stored, now));
  }
  json.member("queue_type", half_text(stored));
  if (keys_ == Keys::all) {
    json.member("state", to_string(stored.state(now)));
    json.member("receive_count", std::uint64_t{stored.message.attempt});
    json.member("version", stored.version);
    write_time(json, stored, "sent_at", stored.message.sent_at);
    if (stored.invisible_until) {
      write_time(json, stored, "invisible_until_at", stored.invisible_until);
    }
    if (!stored.failure.empty()) {
      write_failure(json, stored.failure);
    }
  }
  json.end_object();
}

void MessageJson::write_time(JsonWriter& json, const queue::StoredMessage& stored, std::string_view name,
                             const std::optional<WallTime>& time) const {
  std::string text;
  if (const auto odd = stored.odd.find(name); odd != stored.odd.end()) {
    text = odd->second;
  } else if (time) {
    text = keys_ == Keys::dynamomq ? without_trailing_zeros(format_timestamp(*time)) : format_timestamp(*time);
  }
  json.member(name, text);
}

void MessageJson::write_data(JsonWriter& json, const queue::Message& message) {
  if (message.content_type == queue::kJson && !json_problem(message.body)) {
    json.raw(keys_ == Keys::dynamomq ? with_sorted_keys(message.body) : message.body);
  } else {
    // To Go's reader the type of `data` decides, whatever its bytes are.
    const bool binary =
        !is_utf8(message.body) || (keys_ == Keys::dynamomq && message.content_type == queue::kOctetStream);
    json.value(binary ? base64(message.body) : message.body);
  }
}

void MessageJson::write_body(JsonWriter& json, const queue::Message& message) {
  json.key("data");
  write_data(json, message);
  if (keys_ == Keys::all && !is_utf8(message.body)) {
    json.member("data_encoding", "base64");
  }
}

}  // namespace sluice::cli
