#include "host/operate/copy.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <limits>
#include <optional>
#include <utility>

#include "base/text/base64.hpp"
#include "base/text/json_reader.hpp"
#include "base/text/json_writer.hpp"
#include "base/text/utf8.hpp"
#include "base/text/visible.hpp"
#include "base/timestamp.hpp"
#include "host/fleet/notice_json.hpp"

namespace sluice::operate {

namespace {

// Bodies are of any size up to the store's limit, so that the size of a page follows what the last one weighed.
constexpr std::size_t kLargestPage = 250;
constexpr std::size_t kHeavyPageBytes = 8UL * 1024 * 1024;
constexpr std::size_t kLightPageBytes = 1UL * 1024 * 1024;

constexpr std::size_t kBatchRecords = 500;
constexpr std::size_t kBatchBytes = 4UL * 1024 * 1024;
/// Inserting again is safe: what is there already is left alone.
constexpr int kTries = 3;

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r") == std::string_view::npos; }

constexpr std::string_view kEncodedText = "text";
constexpr std::string_view kEncodedBase64 = "base64";
/// The line's own object takes one level more than the body in it.
constexpr std::size_t kMaxBodyDepth = kMaxRecordDepth - 1;

// The members of a line, for writing and for reading: `visit(key, member)` for each.

template <fleet::Described<queue::FailedAttempt> Attempt, typename Visit>
void describe_line(Attempt& attempt, Visit& visit) {
  visit("error", attempt.error);
  visit("attempt", attempt.attempt);
  visit("host", attempt.host);
  visit("failed_at", attempt.failed_at);
  visit("wait_ms", attempt.wait);
  visit("took_ms", attempt.took);
}

template <fleet::Described<queue::Failure> Failure, typename Visit>
void describe_line(Failure& failure, Visit& visit) {
  visit("error", failure.error);
  visit("attempts", failure.attempts);
  visit("handler", failure.handler);
  visit("host", failure.host);
  visit("failed_at", failure.failed_at);
  visit("wait_ms", failure.wait);
  visit("took_ms", failure.took);
  visit("earlier", failure.earlier);
}

template <fleet::Described<queue::StoredMessage> Record, typename Visit>
void describe_line(Record& record, Visit& visit) {
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
  visit("content_type", message.content_type);
  visit("attributes", message.attributes);
  visit("group", message.group);
  visit("priority", message.priority);
  visit("failure", record.failure);
  visit.item(record.native);
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

class LineWriter {
 public:
  std::string write(const queue::StoredMessage& record) {
    object(record);
    return json_.take_line();
  }

  void operator()(std::string_view key, const std::string& text) {
    json_.key(key);
    put(text);
  }
  void operator()(std::string_view key, std::integral auto number) { json_.member(key, number); }
  void operator()(std::string_view key, WallTime time) { json_.member(key, time); }
  void operator()(std::string_view key, const std::optional<WallTime>& time) {
    json_.member(key, time ? format_timestamp(*time) : std::string());
  }
  /// Where it is known, and as milliseconds, which is what stores keep.
  void operator()(std::string_view key, Duration span) {
    const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
    if (count > 0) {
      json_.member(key, count);
    }
  }
  void operator()(std::string_view key, queue::Half half) { json_.member(key, to_string(half)); }
  void operator()(std::string_view key, queue::Priority priority) {
    if (priority != queue::Priority::normal) {
      json_.member(key, to_string(priority));
    }
  }
  /// An object; an array of pairs where a name is not UTF-8, which no key of an object can be.
  void operator()(std::string_view key, const queue::Attributes& attributes) {
    const bool pairs = std::any_of(attributes.begin(), attributes.end(),
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
    const bool text = is_utf8(message.body);
    const bool json = text && message.content_type == queue::kJson;
    json_.key("data");
    if (json && stands_in_a_line(message.body)) {
      return json_.word(message.body);
    }
    json_.value(text ? message.body : base64(message.body));
    if (json || !text) {
      json_.member("data_encoding", json ? kEncodedText : kEncodedBase64);
    }
  }
  void item(const std::string& native) {
    if (!native.empty()) {
      json_.key("item");
      json_.word(visible(native));  // in JSON controls stand in strings, where escapes mean the same
    }
  }

 private:
  template <typename Part>
  void object(const Part& part) {
    json_.begin_object();
    describe_line(part, *this);
    json_.end_object();
  }
  void put(const std::string& text) {
    if (is_utf8(text)) {
      return json_.value(text);
    }
    json_.begin_object();
    json_.member(kEncodedBase64, base64(text));
    json_.end_object();
  }

  JsonWriter json_;
};

/// Of the keys of a line, those that must be there.
constexpr std::array<std::string_view, 7> kRequired{"id",      "data",       "receive_count", "queue_type",
                                                    "version", "created_at", "sent_at"};

/// Reads one line. For one use.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : reader_(line, kMaxRecordDepth + 1, JsonReader::BadText::refuse) {}

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
    LineReader& line;
    std::string name;
    bool known = false;

    template <typename Member>
    void operator()(std::string_view key, Member& member) {
      if (!known && key == name) {
        known = true;
        line.read(member);
      }
    }
    void data(queue::Message&) {
      if (name == "data" || name == "data_encoding") {
        known = true;
        name == "data" ? static_cast<void>(line.reader_.read_raw(line.data_)) : line.read_encoding();
      }
    }
    void item(std::string& native) {
      if (!known && name == "item") {
        known = true;
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
      if (once && std::find(seen_.begin(), seen_.end(), match.name) != seen_.end()) {
        reader_.fail("\"" + match.name + "\" is given twice");
        return;
      }
      if (once) {
        seen_.push_back(match.name);
      }
      describe_line(part, match);
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

  void read(std::integral auto& out) {
    std::string_view text;
    if (!reader_.read_number(text)) {
      return;
    }
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (problem != std::errc() || end != text.data() + text.size()) {
      reader_.fail("a whole number up to " +
                   std::to_string(std::numeric_limits<std::remove_reference_t<decltype(out)>>::max()) + " is expected");
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
      if (std::find(seen_.begin(), seen_.end(), key) == seen_.end()) {
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

void append_record_line(std::string& out, const queue::StoredMessage& record) { out += LineWriter().write(record); }

Result<queue::StoredMessage> parse_record_line(std::string_view line) { return LineReader(line).read(); }

Result<bool> Exporter::step(std::string& out, Deadline deadline) {
  if (next_ == page_.size()) {
    SLUICE_PASS_ON(list(deadline));
  }
  append(out);
  return !enough() && (next_ < page_.size() || half_ < options_.halves.size());
}

Result<void> Exporter::list(Deadline deadline) {
  page_.clear();
  next_ = 0;
  if (half_ >= options_.halves.size()) {
    return {};
  }
  const queue::ListRequest request{.half = options_.halves[half_],
                                   .limit = page_size_,
                                   .cursor = cursor_,
                                   .content = true,
                                   .native = true,
                                   .consistent = options_.consistent};
  SLUICE_TRY(page, queue_.list(request, deadline));
  page_ = std::move(page->messages);
  cursor_ = std::move(page->next);
  if (cursor_.empty()) {
    ++half_;
  }
  std::size_t bytes = 0;
  for (const queue::StoredMessage& record : page_) {
    bytes += record.message.body.size() + record.native.size();
  }
  adapt(bytes);
  return {};
}

void Exporter::append(std::string& out) {
  const std::size_t full = out.size() + kStepBytes;
  while (next_ < page_.size() && out.size() < full && !enough()) {
    // Its memory goes as soon as it is written: a line may be six times as long as its body.
    const queue::StoredMessage record = std::move(page_[next_++]);
    ++looked_at_;
    if (!options_.wanted || options_.wanted(record)) {
      append_record_line(out, record);
      ++exported_;
    }
  }
}

void Exporter::adapt(std::size_t bytes) {
  if (bytes > kHeavyPageBytes) {
    page_size_ = std::max<std::size_t>(1, page_size_ / 4);
  } else if (bytes < kLightPageBytes) {
    page_size_ = std::min(kLargestPage, page_size_ * 2);
  }
}

std::optional<Importer::Refusal> Importer::add(std::uint64_t line, std::string_view text) {
  if (is_blank(text)) {
    return std::nullopt;
  }
  auto record = parse_record_line(text);
  if (!record) {
    ++counts_.refused;
    return Refusal{line, record.error().message()};
  }
  if (!options_.keep_leases) {
    release(*record);
  }
  if (ids_.contains(record->message.id)) {
    second_ = std::move(*record);
    second_line_ = line;
    return std::nullopt;
  }
  take(line, std::move(*record));
  return std::nullopt;
}

bool Importer::full() const { return second_ || batch_.size() >= kBatchRecords || bytes_ >= kBatchBytes; }

void Importer::take(std::uint64_t line, queue::StoredMessage record) {
  bytes_ += record.message.body.size() + record.native.size();
  ids_.insert(record.message.id);
  batch_.push_back(std::move(record));
  lines_.push_back(line);
}

void Importer::release(queue::StoredMessage& record) const {
  if (record.state(clock_.wall_now()) == queue::MessageState::in_flight) {
    record.invisible_until.reset();
    ++record.version;
  }
}

Result<std::vector<Importer::Refusal>> Importer::flush(Deadline deadline) {
  std::vector<Refusal> refusals;
  do {
    std::optional<Error> failed;
    for (int tries = 0; tries < kTries && !batch_.empty(); ++tries) {
      failed = write_once(refusals, deadline);
      if (failed && failed->code() != ErrorCode::unknown_outcome) {
        break;
      }
    }
    if (failed && !batch_.empty()) {
      return std::move(*failed);
    }
    ids_.clear();
    bytes_ = 0;
    if (second_) {
      take(second_line_, std::move(*second_));
      second_.reset();
    }
  } while (!batch_.empty());
  return refusals;
}

/// Keeps what has to be written again. An error when any record failed for a reason that is not its own.
std::optional<Error> Importer::write_once(std::vector<Refusal>& refusals, Deadline deadline) {
  const auto results = queue_.put(batch_, queue::PutMode::insert, deadline);
  std::optional<Error> failed;
  std::size_t kept = 0;
  for (std::size_t index = 0; index < results.size(); ++index) {
    const queue::PutResult& result = results[index];
    if (result.status == queue::PutStatus::written) {
      ++counts_.imported;
    } else if (result.status == queue::PutStatus::exists) {
      ++counts_.existing;
    } else if (result.error.code() == ErrorCode::invalid) {
      ++counts_.refused;
      refusals.push_back({lines_[index], result.error.message()});
    } else {
      // A reason that a second try does not mend weighs more than one that it may.
      if (!failed || failed->code() == ErrorCode::unknown_outcome) {
        failed = result.error;
      }
      std::swap(batch_[kept], batch_[index]);
      lines_[kept++] = lines_[index];
    }
  }
  batch_.resize(kept);
  lines_.resize(kept);
  return failed;
}

}  // namespace sluice::operate
