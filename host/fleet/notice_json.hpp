#pragma once

#include <array>
#include <type_traits>

#include "base/error.hpp"
#include "base/text/json_reader.hpp"
#include "base/text/json_writer.hpp"
#include "base/text/number.hpp"

namespace sluice::fleet {

/// Writes a notice: one JSON object on one line. Empty, zero and false are left out, as notices are billed by size.
class NoticeWriter {
 public:
  NoticeWriter() { json_.begin_object(); }

  void put(std::string_view name, std::string_view value);
  void put(std::string_view name, bool value);
  template <std::integral Number>
  void put(std::string_view name, Number value) {
    if (value != 0) {
      json_.member(name, value);
    }
  }
  /// A rate, to two digits behind the point below 100.
  void put(std::string_view name, double value);
  /// In milliseconds.
  void put(std::string_view name, Duration value);
  void put(std::string_view name, WallTime value) { json_.member(name, value); }
  void put(std::string_view name, const std::optional<WallTime>& value);
  template <typename Word>
  requires std::is_enum_v<Word>
  void put(std::string_view name, Word value) { put(name, to_string(value)); }
  /// Records, each as an object of what `describe` tells of it.
  template <typename Record>
  void put(std::string_view name, const std::vector<Record>& all);
  /// JSON as it is.
  void raw(std::string_view name, std::string_view json);

  std::size_t size() const { return json_.size(); }
  std::string finish() &&;

 private:
  JsonWriter json_{JsonWriter::Layout::compact, JsonWriter::Strings::plain};
};

/// A record, const to be written or not so to be read into. What is written and read of it is told once, by
/// `describe(record, visit)`, which calls `visit(name, member)` for each member.
template <typename Record, typename Of>
concept Described = std::same_as<std::remove_const_t<Record>, Of>;

template <typename Record>
std::string write_described(const Record& record) {
  NoticeWriter line;
  describe(record, [&line](std::string_view name, const auto& member) { line.put(name, member); });
  return std::move(line).finish();
}

template <typename Record>
void NoticeWriter::put(std::string_view name, const std::vector<Record>& all) {
  if (all.empty()) {
    return;
  }
  json_.key(name);
  json_.begin_array();
  for (const Record& record : all) {
    json_.word(write_described(record));
  }
  json_.end_array();
}

/// What a member's value is read into. Each passes over a value of another kind or out of range: a host of another
/// version may mean something else by the name, and one odd member is no reason to see nothing of a host.
bool read_into(JsonReader& json, std::string& out);
bool read_into(JsonReader& json, bool& out);
template <typename Number>
requires std::is_arithmetic_v<Number>
bool read_into(JsonReader& json, Number& out) {
  std::string_view text;
  if (json.peek() != JsonReader::Kind::number) {
    return json.skip();
  }
  const bool is_read = json.read_number(text);
  out = is_read ? parse_number<Number>(text).value_or(out) : out;
  return is_read;
}
bool read_into(JsonReader& json, Duration& out);
bool read_into(JsonReader& json, WallTime& out);
bool read_into(JsonReader& json, std::optional<WallTime>& out);
/// An array of records.
template <typename Record>
bool read_into(JsonReader& json, std::vector<Record>& all);
/// One of these words, in the order of their enumeration; passes over others.
template <typename Word, std::size_t count>
bool read_word(JsonReader& json, const std::array<std::string_view, count>& words, Word& word) {
  std::string text;
  const bool is_read = read_into(json, text);
  const auto found = std::find(words.begin(), words.end(), text);
  word = found == words.end() ? word : static_cast<Word>(found - words.begin());
  return is_read;
}

/// Reads an object: `member(name)` reads the value of each.
template <typename Member>
bool read_members(JsonReader& json, Member member) {
  std::string_view name;
  if (json.peek() != JsonReader::Kind::object) {
    return json.skip();
  }
  json.begin_object();
  while (json.next_member(name)) {
    // The name holds until the next call.
    member(std::string(name));
  }
  return !json.failed();
}

/// Reads an array of objects: `element()` reads one.
template <typename Element>
bool read_elements(JsonReader& json, Element element) {
  if (json.peek() != JsonReader::Kind::array) {
    return json.skip();
  }
  json.begin_array();
  while (json.next_element()) {
    element();
  }
  return !json.failed();
}

/// The value of that name, where the record has such a member.
template <typename Record>
bool read_described_member(JsonReader& json, const std::string& name, Record& record) {
  bool known = false;
  bool fine = true;
  describe(record, [&](std::string_view own, auto& member) {
    if (!known && own == name) {
      known = true;
      fine = read_into(json, member);
    }
  });
  return known ? fine : json.skip();
}

template <typename Record>
bool read_into(JsonReader& json, std::vector<Record>& all) {
  return read_elements(json, [&] {
    Record& record = all.emplace_back();
    read_members(json, [&](const std::string& name) { read_described_member(json, name, record); });
  });
}

/// A whole text that is one object. ErrorCode::corrupt, calling it `what`, for anything else.
template <typename Member>
Result<void> read_object(std::string_view text, std::string_view what, Member member) {
  constexpr std::size_t kDepth = 8;
  JsonReader json(text, kDepth, JsonReader::BadText::replace);
  const bool object = json.peek() == JsonReader::Kind::object;
  if (!object || !read_members(json, [&](const std::string& name) { member(json, name); }) || !json.finish()) {
    return Error(ErrorCode::corrupt,
                 std::string(what) + " cannot be read: " +
                     (json.failed() ? json.reason() + " at " + json.place() : "it is no JSON object"));
  }
  return {};
}

template <typename Record>
Result<Record> read_described(std::string_view text, std::string_view what) {
  Record record;
  SLUICE_PASS_ON(read_object(text, what, [&record](JsonReader& json, const std::string& name) {
    return read_described_member(json, name, record);
  }));
  return record;
}

}  // namespace sluice::fleet
