#include "host/cli/drop_in/dynamomq_json.hpp"

#include <map>

#include "base/text/base64.hpp"
#include "base/text/json_check.hpp"
#include "base/text/json_reader.hpp"
#include "base/text/utf8.hpp"
#include "base/text/visible.hpp"
#include "base/timestamp.hpp"
#include "host/cli/views/output.hpp"
#include "host/cli/views/queue_report.hpp"
#include "host/operate/message_report.hpp"

namespace sluice::cli {

namespace {

std::string quoted(std::string_view text) {
  std::string out;
  append_visible_json(out, text);
  return out;
}

std::string sorted_value(JsonReader& reader);

std::string sorted_object(JsonReader& reader) {
  std::map<std::string, std::string> members;
  std::string_view name;
  reader.begin_object();
  while (reader.next_member(name)) {
    std::string key(name);
    members[std::move(key)] = sorted_value(reader);
  }
  std::string out = "{";
  for (const auto& [key, member] : members) {
    out += (out.size() > 1 ? "," : "") + quoted(key) + ":" + member;
  }
  return out + "}";
}

std::string sorted_array(JsonReader& reader) {
  std::string out = "[";
  reader.begin_array();
  while (reader.next_element()) {
    out += (out.size() > 1 ? "," : "") + sorted_value(reader);
  }
  return out + "]";
}

/// The next value of a text that is known to be JSON.
std::string sorted_value(JsonReader& reader) {
  switch (reader.peek()) {
    case JsonReader::Kind::object:
      return sorted_object(reader);
    case JsonReader::Kind::array:
      return sorted_array(reader);
    case JsonReader::Kind::string: {
      std::string text;
      reader.read_string(text);
      return quoted(text);
    }
    default: {
      std::string_view text;
      reader.read_raw(text);
      return std::string(text);
    }
  }
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

/// What `write` writes, as Go's encoder would have printed it.
template <typename Write>
std::string go_document(Write write) {
  JsonWriter json(JsonWriter::Layout::indented);
  write(json);
  return escaped_as_go_does(json.take_line());
}

void write_time(JsonWriter& json, const queue::StoredMessage& stored, std::string_view name,
                const std::optional<WallTime>& time) {
  const auto odd = stored.odd.find(name);
  json.member(name, odd != stored.odd.end() ? odd->second
                    : time                  ? without_trailing_zeros(format_timestamp(*time))
                                            : std::string());
}

void write_record(JsonWriter& json, const queue::StoredMessage& stored) {
  json.member("receive_count", stored.message.attempt);
  json.member("queue_type", operate::half_text(stored));
  json.member("version", stored.version);
  write_time(json, stored, "created_at", stored.created_at);
  write_time(json, stored, "updated_at", stored.updated_at);
  write_time(json, stored, "sent_at", stored.message.sent_at);
  write_time(json, stored, "received_at", stored.received_at);
  write_time(json, stored, "invisible_until_at", stored.invisible_until);
}

void write_data(JsonWriter& json, const queue::Message& message) {
  if (message.content_type == queue::kJson && !json_problem(message.body)) {
    return json.raw(with_sorted_keys(message.body));
  }
  // To Go's reader the type of `data` decides, whatever its bytes are.
  const bool binary = !is_utf8(message.body) || message.content_type == queue::kOctetStream;
  json.value(binary ? base64(message.body) : message.body);
}

void write_message(JsonWriter& json, const queue::StoredMessage& message) {
  json.begin_object();
  json.member("id", message.message.id);
  json.key("data");
  write_data(json, message.message);
  write_record(json, message);
  json.end_object();
}

}  // namespace

std::string dynamomq_message(const queue::StoredMessage& message) {
  return go_document([&](JsonWriter& json) { write_message(json, message); });
}

std::string dynamomq_redriven(const queue::StoredMessage& message) {
  const auto write = [&message](JsonWriter& json) { write_message(json, message); };
  return go_document([&write](JsonWriter& json) { put_object(json, "RedroveMessage", write); });
}

std::string dynamomq_system_info(const queue::StoredMessage& message, WallTime now) {
  return go_document([&](JsonWriter& json) {
    json.begin_object();
    json.member("id", message.message.id);
    json.member("status", dynamomq_status(message, now));
    write_record(json, message);
    json.end_object();
  });
}

std::string dynamomq_data(const queue::Message& message) {
  return go_document([&](JsonWriter& json) { write_data(json, message); });
}

std::string dynamomq_statuses(const std::vector<queue::StoredMessage>& messages, WallTime now) {
  const auto all = array_of(messages, [now](JsonWriter& each, const queue::StoredMessage& message) {
    put_object(each, "id", message.message.id, "status", dynamomq_status(message, now), "queue_type",
               operate::half_text(message));
  });
  return go_document([&](JsonWriter& json) { put_object(json, "statuses", or_null(!messages.empty(), all)); });
}

std::string dynamomq_stats(queue::Half half, const queue::QueueOverview& overview) {
  return go_document([&](JsonWriter& json) {
    json.begin_object();
    half == queue::Half::dlq ? write_dlq_stats(json, overview) : write_queue_stats(json, overview);
    json.end_object();
  });
}

std::string dynamomq_outcome(const BulkOutcome& outcome, bool always_failures) {
  return go_document([&](JsonWriter& json) { write_outcome(json, outcome, true, always_failures); });
}

void write_outcome(JsonWriter& json, const BulkOutcome& outcome, bool nulls, bool always_failures) {
  const auto failure = [](JsonWriter& each, const BulkOutcome::Failed& failed) {
    put_object(each, "ID", failed.id, "Error", failed.error);
  };
  json.begin_object();
  put_members(json, "successes", or_null(!nulls || !outcome.successes.empty(), outcome.successes));
  if (!outcome.failures.empty() || always_failures) {
    put_members(json, "failures", or_null(!nulls || !outcome.failures.empty(), array_of(outcome.failures, failure)));
  }
  json.end_object();
}

std::string_view dynamomq_status(const queue::StoredMessage& message, WallTime now) {
  return message.invisible_until && now <= *message.invisible_until ? "PROCESSING" : "READY";
}

std::string with_sorted_keys(std::string_view json) {
  JsonReader reader(json, kJsonDepth, JsonReader::BadText::refuse);
  return sorted_value(reader);
}

std::string escaped_as_go_does(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char byte = json[at];
    const std::string_view three = json.substr(at, 3);
    if (byte == '<' || byte == '>' || byte == '&') {
      out += byte == '<' ? "\\u003c" : byte == '>' ? "\\u003e" : "\\u0026";
    } else if (three == "\xe2\x80\xa8" || three == "\xe2\x80\xa9") {
      out += three.back() == '\xa8' ? "\\u2028" : "\\u2029";
      at += 2;
    } else {
      out += byte;
    }
  }
  return out;
}

}  // namespace sluice::cli
