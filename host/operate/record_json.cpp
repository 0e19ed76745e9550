#include "host/operate/record_json.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>
#include <optional>
#include <utility>

#include "base/ranges.hpp"
#include "base/text/base64.hpp"
#include "base/text/json_check.hpp"
#include "base/text/json_reader.hpp"
#include "base/text/number.hpp"
#include "base/text/utf8.hpp"
#include "base/text/visible.hpp"
#include "base/timestamp.hpp"
#include "host/fleet/notice_json.hpp"

namespace sluice::operate {

namespace {

// The members of a record, for those who write them and who read them: `visit(key, member)` for each.

template <fleet::Described<queue::FailedAttempt> Attempt, typename Visit>
void describe_members(Attempt& attempt, Visit& visit) {
  visit("error", attempt.error);
  visit("attempt", attempt.attempt);
  visit("host", attempt.host);
  visit("failed_at", attempt.failed_at);
  visit("wait_ms", attempt.wait);
  visit("took_ms", attempt.took);
}

template <fleet::Described<queue::Failure> Failure, typename Visit>
void describe_members(Failure& failure, Visit& visit) {
  visit("error", failure.error);
  visit("attempts", failure.attempts);
  visit("handler", failure.handler);
  visit("host", failure.host);
  visit("failed_at", failure.failed_at);
  visit("wait_ms", failure.wait);
  visit("took_ms", failure.took);
  visit("earlier", failure.earlier);
}

/// DynamoMQ's keys in DynamoMQ's order, then ours.
template <fleet::Described<queue::StoredMessage> Record, typename Visit>
void describe_members(Record& record, Visit& visit) {
  auto& message = record.message;
  visit("id", message.id);
  visit.data(message);
  visit("receive_count", message.attempt);
  visit("queue_type", record.half);
  visit("version", record.version);
  visit("created_at", record.created_at);
  visit("updated_at", record.updated_at);
  visit("sent_at", message.sent_at);
  visit("received_at", record.received_at);
  visit("invisible_until_at", record.invisible_until);
  visit.state(record);
  visit("content_type", message.content_type);
  visit("attributes", message.attributes);
  visit("group", message.group);
  visit("priority", message.priority);
  visit("failure", record.failure);
  visit.checkpoint(message);
  visit.item(record.native);
}

constexpr std::string_view kEncodedText = "text";
constexpr std::string_view kEncodedBase64 = "base64";
/// Deepest JSON that a line carries as JSON; a body that is nested deeper goes as text.
constexpr std::size_t kMaxRecordDepth = 256;

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
  // The line's own object takes one level more than the body in it.
  JsonReader reader(json, kMaxRecordDepth - 1, JsonReader::BadText::refuse);
  std::string_view value;
  return reader.read_raw(value) && value.size() == json.size();
}

/// Writes the members of a record: as people and their programs see them, with the message's state and what the record
/// has for a time that is none; or for a copy, so that nothing is lost.
class RecordWriter {
 public:
  enum class Purpose { show, copy };

  /// `now` is what the record's state is of. All of it outlives the writer.
  RecordWriter(JsonWriter& json, Purpose purpose, const queue::StoredMessage& record, WallTime now)
      : json_(json), purpose_(purpose), record_(record), now_(now) {}

  // Times that are not set are empty strings, what is not known or usual is left out.

  void operator()(std::string_view key, const std::string& text) {
    if (purpose_ == Purpose::copy || key != "group" || !text.empty()) {
      json_.key(key);
      put(text);
    }
  }
  void operator()(std::string_view key, std::integral auto number) {
    const bool shows = purpose_ == Purpose::show;
    if (shows && key == "receive_count") {
      json_.member(key, receives_of(record_));
    } else if (!shows || key != "attempts" || number != 0) {  // of an outbox's dead letter nobody knows it
      json_.member(key, number);
    }
  }
  void operator()(std::string_view key, WallTime time) {
    (*this)(key, purpose_ == Purpose::show && time == WallTime{} ? std::nullopt : std::optional(time));
  }
  void operator()(std::string_view key, const std::optional<WallTime>& time) {
    put_unless_odd(key, time ? format_timestamp(*time) : std::string());
  }
  /// As milliseconds, which is what stores keep.
  void operator()(std::string_view key, Duration span) {
    const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
    if (count > 0) {
      json_.member(key, count);
    }
  }
  void operator()(std::string_view key, queue::Half half) { put_unless_odd(key, to_string(half)); }
  void operator()(std::string_view key, queue::Priority priority) {
    if (priority != queue::Priority::normal) {
      json_.member(key, to_string(priority));
    }
  }
  /// An object; in a copy an array of pairs where a name is not UTF-8, which no key of an object can be.
  void operator()(std::string_view key, const queue::Attributes& attributes) {
    const bool pairs =
        purpose_ == Purpose::copy && std::any_of(attributes.begin(), attributes.end(),
                                                 [](const auto& attribute) { return !is_utf8(attribute.first); });
    json_.key(key);
    pairs ? json_.begin_array() : json_.begin_object();
    for (const auto& [name, value] : attributes) {
      if (!pairs) {
        json_.key(name);
        put(value);
        continue;
      }
      json_.begin_array();
      put(name);
      put(value);
      json_.end_array();
    }
    pairs ? json_.end_array() : json_.end_object();
  }
  void operator()(std::string_view key, const queue::Failure& failure) {
    if (!failure.empty()) {
      json_.key(key);
      object(failure);
    }
  }
  void operator()(std::string_view key, const std::vector<queue::FailedAttempt>& attempts) {
    if (attempts.empty()) {
      return;
    }
    json_.key(key);
    json_.begin_array();
    for (const queue::FailedAttempt& attempt : attempts) {
      object(attempt);
    }
    json_.end_array();
  }
  void data(const queue::Message& message) {
    const bool shows = purpose_ == Purpose::show;
    const bool text = is_utf8(message.body);
    const bool json = text && message.content_type == queue::kJson;
    json_.key("data");
    if (json && (shows ? !json_problem(message.body) : stands_in_a_line(message.body))) {
      return shows ? json_.raw(message.body) : json_.word(message.body);
    }
    json_.value(text ? message.body : base64(message.body));
    if (!text || (json && !shows)) {
      json_.member("data_encoding", text ? kEncodedText : kEncodedBase64);
    }
  }
  void state(const queue::StoredMessage& record) {
    if (purpose_ == Purpose::show) {
      json_.member("state", to_string(record.state(now_)));
    }
  }
  /// What it says is its handler's affair: people see how much there is.
  void checkpoint(const queue::Message& message) {
    if (message.checkpoint.empty()) {
      return;
    }
    if (purpose_ == Purpose::show) {
      return json_.member("checkpoint_bytes", message.checkpoint.size());
    }
    json_.key("checkpoint");
    put(message.checkpoint);
  }
  void item(const std::string& native) {
    if (purpose_ == Purpose::copy && !native.empty()) {
      json_.key("item");
      json_.word(visible(native));  // in JSON controls stand in strings, where escapes mean the same
    }
  }

  template <typename Part>
  void object(const Part& part) {
    json_.begin_object();
    describe_members(part, *this);
    json_.end_object();
  }

 private:
  void put(const std::string& text) {
    if (purpose_ == Purpose::show || is_utf8(text)) {
      return json_.value(text);
    }
    json_.begin_object();
    json_.member(kEncodedBase64, base64(text));
    json_.end_object();
  }
  /// Shows what the record has there where that is no time, or no half.
  void put_unless_odd(std::string_view key, std::string_view text) {
    const auto odd = record_.odd.find(key);
    json_.member(key, purpose_ == Purpose::show && odd != record_.odd.end() ? odd->second : text);
  }

  JsonWriter& json_;
  const Purpose purpose_;
  const queue::StoredMessage& record_;
  const WallTime now_;
};

/// Of the keys of a line, those that must be there.
constexpr std::array<std::string_view, 7> kRequired{"id",      "data",       "receive_count", "queue_type",
                                                    "version", "created_at", "sent_at"};

/// Reads one line. For one use.
class RecordReader {
 public:
  explicit RecordReader(std::string_view line) : reader_(line, kMaxRecordDepth + 1, JsonReader::BadText::refuse) {}

  Result<queue::StoredMessage> read() {
    read_part(record_, "an exported record; new messages are sent with `sluice send`", true);
    if (!reader_.finish() || !complete() || !read_body()) {
      return Error(ErrorCode::invalid, objection_.empty() ? place() + reader_.reason() : objection_);
    }
    return std::move(record_);
  }

 private:
  /// Reads the member of one name into what a description has under it.
  struct Match {
    RecordReader& line;
    std::string name;
    bool known = false;

    bool is(std::string_view key) {
      known = known || key == name;
      return key == name;
    }
    template <typename Member>
    void operator()(std::string_view key, Member& member) {
      if (is(key)) {
        line.read(member);
      }
    }
    void data(queue::Message&) {
      if (is("data")) {
        line.reader_.read_raw(line.data_);
      } else if (is("data_encoding")) {
        line.read_encoding();
      }
    }
    void state(const queue::StoredMessage&) {}
    void checkpoint(queue::Message& message) {
      if (is("checkpoint")) {
        line.read_checkpoint(message.checkpoint);
      }
    }
    void item(std::string& native) {
      if (is("item")) {
        line.read_item(native);
      }
    }
  };

  template <typename Part>
  void read_part(Part& part, std::string_view what, bool once) {
    std::string_view name;
    reader_.begin_object();
    while (reader_.next_member(name)) {
      Match match{*this, std::string(name)};
      if (once && contains(seen_, match.name)) {
        reader_.fail("\"" + match.name + "\" is given twice");
        return;
      }
      if (once) {
        seen_.push_back(match.name);
      }
      describe_members(part, match);
      if (!match.known) {
        reader_.fail("\"" + match.name.substr(0, 80) + "\" is no key of " + std::string(what));
      }
    }
  }

  std::string place() const {
    const std::string where = reader_.place();  // "line 1, column 7", where the line is always this one
    const std::size_t column = where.find("column");
    return (column == std::string::npos ? where : where.substr(column)) + ": ";
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

  void read(std::string& out) { read_text(out); }

  void read_checkpoint(std::string& out) {
    if (read_text(out) && out.size() > queue::kMostCheckpointBytes) {
      reader_.fail(queue::too_long_checkpoint(out.size()).message());
    }
  }

  void read(std::integral auto& out) {
    std::string_view text;
    if (!reader_.read_number(text)) {
      return;
    }
    using Number = std::remove_reference_t<decltype(out)>;
    if (const auto number = parse_number<Number>(text)) {
      out = *number;
    } else {
      reader_.fail("a whole number up to " + std::to_string(std::numeric_limits<Number>::max()) + " is expected");
    }
  }

  void read(queue::Priority& out) {
    std::string name;
    if (!read_text(name)) {
      return;
    }
    if (const auto priority = queue::priority_named(name)) {
      out = *priority;
    } else {
      reader_.fail("\"priority\" is one of \"critical\", \"high\", \"normal\" and \"low\"");
    }
  }

  void read_encoding() {
    if (read_text(encoding_) && encoding_ != kEncodedText && encoding_ != kEncodedBase64) {
      reader_.fail("\"data_encoding\" is \"text\" or \"base64\"");
    }
  }

  void read(queue::Half& out) {
    std::string text;
    if (!read_text(text)) {
      return;
    }
    if (text == to_string(queue::Half::dlq)) {
      out = queue::Half::dlq;
    } else if (text != to_string(queue::Half::standard)) {
      reader_.fail("\"queue_type\" is \"STANDARD\" or \"DLQ\"");
    }
  }

  void read(std::optional<WallTime>& out) {
    std::string text;
    if (!read_text(text) || text.empty()) {
      return;
    }
    out = parse_timestamp(text);
    if (!out) {
      reader_.fail("a time such as 2026-01-02T03:04:05.000000006Z is expected");
    }
  }

  void read(WallTime& out) {
    std::optional<WallTime> time;
    read(time);
    if (!time) {
      reader_.fail("this time may not be empty");
      return;
    }
    out = *time;
  }

  void add(queue::Attributes& out, std::string name, std::string value) {
    if (!out.emplace(std::move(name), std::move(value)).second) {
      reader_.fail("an attribute is given twice");
    }
  }

  void read(queue::Attributes& out) {
    std::string value;
    if (reader_.peek() == JsonReader::Kind::object) {
      std::string_view name;
      reader_.begin_object();
      while (reader_.next_member(name)) {
        std::string key(name);
        if (read_text(value)) {
          add(out, std::move(key), value);
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
      add(out, std::move(name), value);
    }
  }

  void read(queue::Failure& failure) { read_part(failure, "a failure", false); }

  void read(Duration& out) {
    constexpr std::int64_t kLongest = std::numeric_limits<Duration::rep>::max() / 1'000'000;
    std::int64_t count = 0;
    read(count);
    if (count < 0 || count > kLongest) {
      reader_.fail("a time in milliseconds is expected");
      return;
    }
    out = std::chrono::milliseconds(count);
  }

  void read(std::vector<queue::FailedAttempt>& earlier) {
    reader_.begin_array();
    while (reader_.next_element()) {
      queue::FailedAttempt attempt;
      read_part(attempt, "a failed attempt", false);
      if (earlier.size() < queue::kEarlierFailures) {
        earlier.push_back(std::move(attempt));
      }
    }
  }

  void read_item(std::string& native) {
    std::string_view text;
    if (reader_.peek() != JsonReader::Kind::object) {
      reader_.fail("\"item\" is an object");
    } else if (reader_.read_raw(text)) {
      native = text;
    }
  }

  bool refuse(std::string why) {
    objection_ = std::move(why);
    return false;
  }

  bool complete() {
    for (const std::string_view key : kRequired) {
      if (!contains(seen_, key)) {
        return refuse("it has no \"" + std::string(key) +
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
  std::vector<std::string> seen_;
};

}  // namespace

void write_members(JsonWriter& json, const queue::StoredMessage& record, WallTime now) {
  RecordWriter writer(json, RecordWriter::Purpose::show, record, now);
  describe_members(record, writer);
}

void write_last_members(JsonWriter& json, const queue::StoredMessage& record) {
  RecordWriter writer(json, RecordWriter::Purpose::show, record, {});
  writer("sent_at", record.message.sent_at);
  if (record.invisible_until) {
    writer("invisible_until_at", record.invisible_until);
  }
  writer("failure", record.failure);
}

void append_record_line(std::string& out, const queue::StoredMessage& record) {
  JsonWriter json;
  RecordWriter(json, RecordWriter::Purpose::copy, record, {}).object(record);
  out += json.take_line();
}

Result<queue::StoredMessage> parse_record_line(std::string_view line) { return RecordReader(line).read(); }

}  // namespace sluice::operate
