#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/text/json_writer.hpp"

/// How records are shown: each kind is described once, by a function `describe(record, fields)`, and JSON, rows, one
/// record whole and the live screen are made of that. A field has a key for programs, a column for people, or both:
///
///     void describe(const fleet::AuditEntry& entry, Fields& fields) {
///       fields.text("who", {"WHO"}, entry.who);
///     }
namespace sluice::operate {

enum class Colour { none, dim, red, green, yellow };

/// Where people see a field, without a title they do not; and what becomes of it where a row is wider than a terminal.
struct Column {
  std::string_view title{};
  bool right = false;     ///< for numbers
  std::size_t least = 0;  ///< its cells may be cut to no less than this; 0: they stay whole
  int spare = 0;          ///< columns are left out, those with the highest number first; 0: it stays
  bool prose = false;     ///< cells are cut at the end; others in the middle, as names and ids differ at their ends
};
inline constexpr Column kNowhere{};
/// A column of numbers.
constexpr Column figures(std::string_view title, int spare = 0) {
  return {.title = title, .right = true, .spare = spare};
}
constexpr Column names(std::string_view title, std::size_t least, int spare = 0) {
  return {.title = title, .least = least, .spare = spare};
}
/// What is left at least of names of jobs, queues and handlers; of ids of messages at work, which commands take, a
/// whole UUID.
inline constexpr std::size_t kLeastName = 12;
inline constexpr std::size_t kLeastId = 36;
constexpr Column prose(std::string_view title, std::size_t least, int spare = 0) {
  return {.title = title, .least = least, .spare = spare, .prose = true};
}

struct Cell {
  Cell(std::string content, Colour tint = Colour::none) : text(std::move(content)), colour(tint) {}
  Cell(const char* content) : text(content) {}
  std::string text;
  Colour colour = Colour::none;
};

/// A record as people see it: its cells in the order of its description.
using Row = std::vector<std::pair<Column, Cell>>;

template <typename Record>
void write_object(JsonWriter& json, const Record& record, WallTime now);
template <typename Record>
void write_all(JsonWriter& json, const std::vector<Record>& all, WallTime now);

/// What a description tells its fields: writes them as members of an object of JSON, or collects them as a row. For the
/// time of one description.
class Fields {
 public:
  Fields(JsonWriter& json, WallTime now) : json_(&json), now_(now) {}
  Fields(Row& row, WallTime now) : row_(&row), now_(now) {}

  WallTime now() const { return now_; }
  /// For what programs alone see: lists, and records within the record. Null where people look.
  JsonWriter* json() { return json_; }

  void text(std::string_view key, const Column& column, std::string_view value, Colour colour = Colour::none);
  template <std::integral Number>
  void number(std::string_view key, const Column& column, Number value, Colour colour = Colour::none) {
    member(key, value);
    if (row_ != nullptr) {
      cell(column, {std::to_string(value), colour});
    }
  }
  /// A second, as far as it is known; the colour is for rates that are shown as more than 0.
  void rate(std::string_view key, const Column& column, std::optional<double> value, Colour colour = Colour::none);
  /// A time that something took, if it did.
  void seconds(std::string_view key, const Column& column, std::optional<Duration> value);
  /// RFC 3339, for people to the second.
  void time(std::string_view key, const Column& column, WallTime value);

  /// For programs alone.
  template <typename Value>
  void member(std::string_view key, const Value& value) {
    if (json_ != nullptr && !key.empty()) {
      json_->member(key, value);
    }
  }
  /// A number with so many digits behind the point; null where there is none.
  void member(std::string_view key, std::optional<double> value, int digits);
  /// A record within the record.
  template <typename Record>
  void record(std::string_view key, const Record& one) {
    if (json_ != nullptr) {
      json_->key(key);
      write_object(*json_, one, now_);
    }
  }
  template <typename Record>
  void records(std::string_view key, const std::vector<Record>& all) {
    if (json_ != nullptr) {
      json_->key(key);
      write_all(*json_, all, now_);
    }
  }
  /// For people alone.
  void cell(const Column& column, Cell cell);

 private:
  JsonWriter* json_ = nullptr;
  Row* row_ = nullptr;
  WallTime now_;
};

template <typename Record>
void write_object(JsonWriter& json, const Record& record, WallTime now) {
  Fields fields(json, now);
  json.begin_object();
  describe(record, fields);
  json.end_object();
}

template <typename Record>
void write_all(JsonWriter& json, const std::vector<Record>& all, WallTime now) {
  json.begin_array();
  for (const Record& record : all) {
    write_object(json, record, now);
  }
  json.end_array();
}

template <typename Record>
Row row_of(const Record& record, WallTime now) {
  Row row;
  Fields fields(row, now);
  describe(record, fields);
  return row;
}

// Figures for people.

/// "2026-01-31T12:00:00Z".
std::string to_the_second(WallTime time);
/// A rate a second: "0", "0.4", "12", "1.2k".
std::string rate_text(double per_second);
/// A time that something took: "250us", "12ms", "1.50s", "12m"; "-" for none.
std::string time_text(Duration time);
/// How long, for people: "0s", "45s", "12m", "3h", "4d", from two of a unit on; negative ones count as zero.
std::string short_duration(Duration duration);

}  // namespace sluice::operate
