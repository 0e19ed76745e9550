#include <algorithm>
#include <optional>

#include "base/text/base64.hpp"
#include "base/text/json_reader.hpp"
#include "base/text/utf8.hpp"
#include "base/text/visible.hpp"
#include "base/timestamp.hpp"
#include "host/operate/record_line.hpp"

namespace sluice::operate {

namespace {

constexpr std::string_view kEncodedText = "text";
constexpr std::string_view kEncodedBase64 = "base64";
/// The line's own object takes one level more than the body in it.
constexpr std::size_t kMaxBodyDepth = kMaxRecordDepth - 1;

void append_base64_text(std::string& out, std::string_view bytes) {
  out += '"';
  append_base64(out, bytes);
  out += '"';
}

void append_text(std::string& out, std::string_view text) {
  if (is_utf8(text)) {
    append_visible_json(out, text);
    return;
  }
  out += "{\"base64\":";
  append_base64_text(out, text);
  out += '}';
}

void append_key(std::string& out, std::string_view key) {
  out += ",\"";
  out += key;
  out += "\":";
}

void append_time(std::string& out, std::string_view key, const std::optional<WallTime>& time) {
  append_key(out, key);
  out += '"';
  if (time) {
    out += format_timestamp(*time);
  }
  out += '"';
}

/// DEL and C1 controls, which JSON lets stand in a string and a terminal obeys.
bool steers_a_terminal(std::string_view json) {
  for (std::size_t at = 0; at < json.size(); ++at) {
    const bool is_c1 = json[at] == '\xc2' && at + 1 < json.size() && static_cast<unsigned char>(json[at + 1]) < 0xa0;
    if (json[at] == '\x7f' || is_c1) {
      return true;
    }
  }
  return false;
}

/// JSON that comes back byte for byte when it stands in a line: valid, without line breaks or space around it, and
/// harmless where somebody looks at it.
bool stands_in_a_line(std::string_view json) {
  if (json.empty() || json.find_first_of("\r\n") != std::string_view::npos || steers_a_terminal(json)) {
    return false;
  }
  JsonReader reader(json, kMaxBodyDepth, JsonReader::BadText::refuse);
  std::string_view value;
  return reader.read_raw(value) && value.size() == json.size();
}

void append_body(std::string& out, const queue::Message& message) {
  append_key(out, "data");
  if (!is_utf8(message.body)) {
    append_base64_text(out, message.body);
    append_key(out, "data_encoding");
    append_text(out, kEncodedBase64);
  } else if (message.content_type != queue::kJson) {
    append_visible_json(out, message.body);
  } else if (stands_in_a_line(message.body)) {
    out += message.body;
  } else {
    append_visible_json(out, message.body);
    append_key(out, "data_encoding");
    append_text(out, kEncodedText);
  }
}

/// An object; an array of pairs where a name is not UTF-8, which no key of an object can be.
void append_attributes(std::string& out, const queue::Attributes& attributes) {
  const bool pairs = std::any_of(attributes.begin(), attributes.end(),
                                 [](const auto& attribute) { return !is_utf8(attribute.first); });
  append_key(out, "attributes");
  out += pairs ? '[' : '{';
  for (const auto& [name, value] : attributes) {
    const bool first = out.back() == '{' || out.back() == '[';
    out += first ? "" : ",";
    out += pairs ? "[" : "";
    append_text(out, name);
    out += pairs ? ',' : ':';
    append_text(out, value);
    out += pairs ? "]" : "";
  }
  out += pairs ? ']' : '}';
}

/// Where they are known, and as milliseconds, which is what stores keep.
void append_spans(std::string& out, Duration wait, Duration took) {
  const auto append = [&out](std::string_view name, Duration span) {
    const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
    if (count > 0) {
      append_key(out, name);
      out += std::to_string(count);
    }
  };
  append("wait_ms", wait);
  append("took_ms", took);
}

void append_attempt(std::string& out, const queue::FailedAttempt& attempt) {
  out += "{\"error\":";
  append_text(out, attempt.error);
  append_key(out, "attempt");
  out += std::to_string(attempt.attempt);
  append_key(out, "host");
  append_text(out, attempt.host);
  append_time(out, "failed_at", attempt.failed_at);
  append_spans(out, attempt.wait, attempt.took);
  out += '}';
}

void append_failure(std::string& out, const queue::Failure& failure) {
  append_key(out, "failure");
  out += "{\"error\":";
  append_text(out, failure.error);
  append_key(out, "attempts");
  out += std::to_string(failure.attempts);
  append_key(out, "handler");
  append_text(out, failure.handler);
  append_key(out, "host");
  append_text(out, failure.host);
  append_time(out, "failed_at", failure.failed_at);
  append_spans(out, failure.wait, failure.took);
  if (!failure.earlier.empty()) {
    append_key(out, "earlier");
    char before = '[';
    for (const queue::FailedAttempt& attempt : failure.earlier) {
      out += before;
      append_attempt(out, attempt);
      before = ',';
    }
    out += ']';
  }
  out += '}';
}

}  // namespace

void append_record_line(std::string& out, const queue::StoredMessage& record) {
  const queue::Message& message = record.message;
  out += "{\"id\":";
  append_text(out, message.id);
  append_body(out, message);
  append_key(out, "receive_count");
  out += std::to_string(message.attempt);
  append_key(out, "queue_type");
  append_text(out, to_string(record.half));
  append_key(out, "version");
  out += std::to_string(record.version);
  append_time(out, "created_at", record.created_at);
  append_time(out, "updated_at", record.updated_at);
  append_time(out, "sent_at", message.sent_at);
  append_time(out, "received_at", record.received_at);
  append_time(out, "invisible_until_at", record.invisible_until);
  append_key(out, "content_type");
  append_text(out, message.content_type);
  append_attributes(out, message.attributes);
  append_key(out, "group");
  append_text(out, message.group);
  if (message.priority != queue::Priority::normal) {
    append_key(out, "priority");
    append_text(out, to_string(message.priority));
  }
  if (!record.failure.empty()) {
    append_failure(out, record.failure);
  }
  if (!record.native.empty()) {
    append_key(out, "item");
    append_visible(out, record.native);  // in JSON controls stand in strings, where escapes mean the same
  }
  out += "}\n";
}

}  // namespace sluice::operate
