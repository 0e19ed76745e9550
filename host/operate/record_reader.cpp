#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "base/text/base64.hpp"
#include "base/text/json_reader.hpp"
#include "base/timestamp.hpp"
#include "host/operate/record_line.hpp"

namespace sluice::operate {

namespace {

constexpr std::string_view kEncodedText = "text";
constexpr std::string_view kEncodedBase64 = "base64";

/// The keys of a line. Those up to kRequired must be there.
constexpr std::array<std::string_view, 17> kKeys{"id",
                                                 "data",
                                                 "receive_count",
                                                 "queue_type",
                                                 "version",
                                                 "created_at",
                                                 "sent_at",
                                                 "updated_at",
                                                 "received_at",
                                                 "invisible_until_at",
                                                 "data_encoding",
                                                 "content_type",
                                                 "attributes",
                                                 "group",
                                                 "failure",
                                                 "item",
                                                 "priority"};
constexpr std::size_t kRequired = 7;

/// Reads one line. For one use.
class LineParser {
 public:
  explicit LineParser(std::string_view line) : reader_(line, kMaxRecordDepth + 1, JsonReader::BadText::refuse) {}

  Result<queue::StoredMessage> parse() {
    std::string_view name;
    reader_.begin_object();
    while (reader_.next_member(name)) {
      read_member(name);
    }
    if (!reader_.finish() || !complete() || !read_body()) {
      return Error(ErrorCode::invalid, objection_.empty() ? place() + reader_.reason() : objection_);
    }
    return std::move(record_);
  }

 private:
  std::string place() const {
    const std::string where = reader_.place();  // "line 1, column 7", where the line is always this one
    const std::size_t column = where.find("column");
    return (column == std::string::npos ? where : where.substr(column)) + ": ";
  }

  void read_member(std::string_view name) {
    const auto found = std::find(kKeys.begin(), kKeys.end(), name);
    if (found == kKeys.end()) {
      reader_.fail("\"" + std::string(name.substr(0, 80)) +
                   "\" is no key of an exported record; new messages are sent with `sluice send`");
      return;
    }
    const auto index = static_cast<std::size_t>(found - kKeys.begin());
    if ((seen_ & 1U << index) != 0) {
      reader_.fail("\"" + std::string(name) + "\" is given twice");
      return;
    }
    seen_ |= 1U << index;
    read_value(*found);
  }

  void read_value(std::string_view key) {
    queue::Message& message = record_.message;
    if (key == "id") {
      read_text(message.id);
    } else if (key == "data") {
      reader_.read_raw(data_);
    } else if (key == "data_encoding") {
      read_encoding();
    } else if (key == "receive_count") {
      read_number(message.attempt);
    } else if (key == "queue_type") {
      read_queue_type();
    } else if (key == "version") {
      read_number(record_.version);
    } else if (key == "content_type") {
      read_text(message.content_type);
    } else if (key == "attributes") {
      read_attributes();
    } else if (key == "group") {
      read_text(message.group);
    } else if (key == "priority") {
      read_priority();
    } else if (key == "failure") {
      read_failure();
    } else if (key == "item") {
      read_item();
    } else {
      read_record_time(key);
    }
  }

  void read_record_time(std::string_view key) {
    if (key == "received_at") {
      read_optional_time(record_.received_at);
    } else if (key == "invisible_until_at") {
      read_optional_time(record_.invisible_until);
    } else if (key == "created_at") {
      read_time(record_.created_at);
    } else if (key == "updated_at") {
      read_time(record_.updated_at);
    } else {
      read_time(record_.message.sent_at);
    }
  }

  bool read_text(std::string& out) {
    if (reader_.peek() != JsonReader::Kind::object) {
      return reader_.read_string(out);
    }
    std::string_view name;
    std::string encoded;
    std::optional<std::string> bytes;
    reader_.begin_object();
    while (reader_.next_member(name)) {
      if (name != kEncodedBase64 || bytes || !reader_.read_string(encoded)) {
        return reader_.fail("a string is expected, or {\"base64\": \"...\"}");
      }
      bytes = decode_base64(encoded);
      if (!bytes) {
        return reader_.fail("this is no base64");
      }
    }
    if (!bytes) {
      return reader_.fail("a string is expected, or {\"base64\": \"...\"}");
    }
    out = std::move(*bytes);
    return true;
  }

  template <typename Number>
  void read_number(Number& out) {
    std::string_view text;
    if (!reader_.read_number(text)) {
      return;
    }
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (problem != std::errc() || end != text.data() + text.size()) {
      reader_.fail("a whole number up to " + std::to_string(std::numeric_limits<Number>::max()) + " is expected");
    }
  }

  void read_priority() {
    std::string name;
    if (!read_text(name)) {
      return;
    }
    if (const auto priority = queue::priority_named(name)) {
      record_.message.priority = *priority;
    } else {
      reader_.fail("\"priority\" is one of \"critical\", \"high\", \"normal\" and \"low\"");
    }
  }

  void read_encoding() {
    if (read_text(encoding_) && encoding_ != kEncodedText && encoding_ != kEncodedBase64) {
      reader_.fail("\"data_encoding\" is \"text\" or \"base64\"");
    }
  }

  void read_queue_type() {
    std::string text;
    if (!read_text(text)) {
      return;
    }
    if (text == to_string(queue::Half::dlq)) {
      record_.half = queue::Half::dlq;
    } else if (text != to_string(queue::Half::standard)) {
      reader_.fail("\"queue_type\" is \"STANDARD\" or \"DLQ\"");
    }
  }

  void read_optional_time(std::optional<WallTime>& out) {
    std::string text;
    if (!read_text(text) || text.empty()) {
      return;
    }
    out = parse_timestamp(text);
    if (!out) {
      reader_.fail("a time such as 2026-01-02T03:04:05.000000006Z is expected");
    }
  }

  void read_time(WallTime& out) {
    std::optional<WallTime> time;
    read_optional_time(time);
    if (!time) {
      reader_.fail("this time may not be empty");
      return;
    }
    out = *time;
  }

  void add_attribute(std::string name, std::string value) {
    if (!record_.message.attributes.emplace(std::move(name), std::move(value)).second) {
      reader_.fail("an attribute is given twice");
    }
  }

  void read_attributes() {
    std::string value;
    if (reader_.peek() == JsonReader::Kind::object) {
      std::string_view name;
      reader_.begin_object();
      while (reader_.next_member(name)) {
        std::string key(name);
        if (read_text(value)) {
          add_attribute(std::move(key), value);
        }
      }
      return;
    }
    reader_.begin_array();
    while (reader_.next_element()) {
      std::string name;
      reader_.begin_array();
      if (!reader_.next_element() || !read_text(name) || !reader_.next_element() || !read_text(value) ||
          reader_.next_element()) {
        reader_.fail("an attribute is a name and a value");
        return;
      }
      add_attribute(std::move(name), value);
    }
  }

  void read_failure() {
    queue::Failure& failure = record_.failure;
    std::string_view name;
    reader_.begin_object();
    while (reader_.next_member(name)) {
      if (name == "error") {
        read_text(failure.error);
      } else if (name == "attempts") {
        read_number(failure.attempts);
      } else if (name == "handler") {
        read_text(failure.handler);
      } else if (name == "host") {
        read_text(failure.host);
      } else if (name == "failed_at") {
        read_time(failure.failed_at);
      } else if (name == "wait_ms") {
        read_span(failure.wait);
      } else if (name == "took_ms") {
        read_span(failure.took);
      } else if (name == "earlier") {
        read_earlier(failure);
      } else {
        reader_.fail("\"" + std::string(name.substr(0, 80)) + "\" is no key of a failure");
      }
    }
  }

  void read_span(Duration& out) {
    constexpr std::int64_t kLongest = std::numeric_limits<Duration::rep>::max() / 1'000'000;
    std::int64_t count = 0;
    read_number(count);
    if (count < 0 || count > kLongest) {
      reader_.fail("a time in milliseconds is expected");
      return;
    }
    out = std::chrono::milliseconds(count);
  }

  void read_earlier(queue::Failure& failure) {
    reader_.begin_array();
    while (reader_.next_element()) {
      queue::FailedAttempt attempt;
      read_attempt(attempt);
      if (failure.earlier.size() < queue::kEarlierFailures) {
        failure.earlier.push_back(std::move(attempt));
      }
    }
  }

  void read_attempt(queue::FailedAttempt& attempt) {
    std::string_view name;
    reader_.begin_object();
    while (reader_.next_member(name)) {
      if (name == "error") {
        read_text(attempt.error);
      } else if (name == "attempt") {
        read_number(attempt.attempt);
      } else if (name == "host") {
        read_text(attempt.host);
      } else if (name == "failed_at") {
        read_time(attempt.failed_at);
      } else if (name == "wait_ms") {
        read_span(attempt.wait);
      } else if (name == "took_ms") {
        read_span(attempt.took);
      } else {
        reader_.fail("\"" + std::string(name.substr(0, 80)) + "\" is no key of a failed attempt");
      }
    }
  }

  void read_item() {
    std::string_view text;
    if (reader_.peek() != JsonReader::Kind::object) {
      reader_.fail("\"item\" is an object");
    } else if (reader_.read_raw(text)) {
      record_.native = text;
    }
  }

  bool refuse(std::string why) {
    objection_ = std::move(why);
    return false;
  }

  bool complete() {
    for (std::size_t index = 0; index < kRequired; ++index) {
      if ((seen_ & 1U << index) == 0) {
        return refuse("it has no \"" + std::string(kKeys[index]) +
                      "\", so it is no record of `sluice export`; new messages are sent with `sluice send`");
      }
    }
    return !record_.message.id.empty() || refuse("its \"id\" is empty");
  }

  bool read_body() {
    queue::Message& message = record_.message;
    if (encoding_.empty() && message.content_type == queue::kJson) {
      message.body = data_;
      return true;
    }
    JsonReader data(data_, 1, JsonReader::BadText::refuse);
    if (data.peek() != JsonReader::Kind::string || !data.read_string(message.body)) {
      return refuse("\"data\" is no string, which the content type " + message.content_type.substr(0, 80) +
                    (encoding_.empty() ? "" : " and the encoding " + encoding_) + " asks for");
    }
    if (encoding_ != kEncodedBase64) {
      return true;
    }
    auto bytes = decode_base64(message.body);
    if (!bytes) {
      return refuse("\"data\" is no base64");
    }
    message.body = std::move(*bytes);
    return true;
  }

  JsonReader reader_;
  queue::StoredMessage record_;
  std::string_view data_;
  std::string encoding_;
  std::string objection_;
  unsigned seen_ = 0;
};

}  // namespace

Result<queue::StoredMessage> parse_record_line(std::string_view line) { return LineParser(line).parse(); }

}  // namespace sluice::operate
