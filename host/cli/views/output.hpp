#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/decimal.hpp"
#include "base/text/json_writer.hpp"
#include "host/cli/command.hpp"
#include "host/cli/console.hpp"
#include "host/operate/message_report.hpp"

/// How commands show what they have found: as JSON, or as text.
namespace sluice::cli {

using operate::Colour;
using operate::rate_text;
using operate::short_duration;
using operate::time_text;

// Objects of JSON whose members stand side by side: `json_line("id", id, "shards", 4)`. A member's content is a value
// that JsonWriter knows, or a function that writes one; where a name could stand, a function writes members of its own.

template <typename Content>
void put_content(JsonWriter& json, const Content& content) {
  if constexpr (std::invocable<const Content&, JsonWriter&>) {
    content(json);
  } else {
    json.value(content);
  }
}

inline void put_members(JsonWriter& /*json*/) {}
template <std::invocable<JsonWriter&> Members, typename... Others>
void put_members(JsonWriter& json, const Members& members, const Others&... others);

template <typename Content, typename... Others>
void put_members(JsonWriter& json, std::string_view name, const Content& content, const Others&... others) {
  json.key(name);
  put_content(json, content);
  put_members(json, others...);
}

template <std::invocable<JsonWriter&> Members, typename... Others>
void put_members(JsonWriter& json, const Members& members, const Others&... others) {
  members(json);
  put_members(json, others...);
}

template <typename... Members>
void put_object(JsonWriter& json, const Members&... members) {
  json.begin_object();
  put_members(json, members...);
  json.end_object();
}

/// A member that is not always there.
template <typename Content>
auto member_if(bool there, std::string_view name, Content content) {
  return [there, name, content = std::move(content)](JsonWriter& json) {
    if (there) {
      put_members(json, name, content);
    }
  };
}

/// An array, each element of which `write` writes.
template <typename Elements, typename Write>
auto array_of(const Elements& elements, Write write) {
  return [&elements, write = std::move(write)](JsonWriter& json) {
    json.begin_array();
    for (const auto& element : elements) {
      write(json, element);
    }
    json.end_array();
  };
}

/// A number with so many digits behind the point.
inline auto figure(double number, int digits) {
  return [text = fixed_decimal(number, digits)](JsonWriter& json) { json.word(text); };
}

/// The content, or null where it is not there.
template <typename Content>
auto or_null(bool there, Content content) {
  return [there, content = std::move(content)](JsonWriter& json) { there ? put_content(json, content) : json.null(); };
}

/// What `write` writes, as a command prints it.
template <typename Write>
std::string json_text(Write write) {
  JsonWriter json(JsonWriter::Layout::indented);
  write(json);
  return json.take_line();
}

/// A whole object.
template <typename... Members>
std::string json_line(const Members&... members) {
  return json_text([&](JsonWriter& json) { put_object(json, members...); });
}

/// Says what a command has come to: to people in a text, to programs in an object with these members.
template <typename... Members>
Exit show_result(Console& console, const std::string& text, const Members&... members) {
  return print(console.shows_text() ? text : json_line(members...), console);
}

/// `text` in a colour, where there are colours.
std::string tinted(std::string_view text, Colour colour, bool colours);

/// What ends every colour.
inline constexpr std::string_view kPlain = "\x1b[0m";

/// How many columns of a terminal the text takes; a wide character takes two, a combining one and a colour none.
std::size_t display_width(std::string_view text);

/// The beginning of a line of at most so many columns, whole characters and colours.
std::string fit_line(const std::string& line, std::size_t columns);

/// Appends text broken at spaces so that no line is wider than `width`; it begins at the column `indent`, to which its
/// other lines are indented. Line breaks of its own stay.
void append_wrapped(std::string& out, std::string_view text, std::size_t indent, std::size_t width);
/// Lines that are wider than the screen, broken; what follows of each stands further in than it begins.
std::string wrapped(const std::string& text, const Screen& screen);

/// Which columns of records are shown, and how.
struct RowsView {
  Screen screen{};
  std::vector<std::string_view> columns{};  ///< by their titles, in this order; none: all of the description
  std::string_view marked{};                ///< the title with a sign behind it
  std::string_view mark{};
};

/// Lays out rows in aligned columns, for people. One thread.
///
/// Everywhere but on a terminal nothing is left out or cut. Where rows are wider than a terminal, columns in which
/// nothing stands are left out, then those that can be spared, until the others fit when they are cut as far as they
/// may be; then the widest ones are cut as far as they have to be. Example: of ids, hosts and errors, the hosts go, and
/// the errors get what the ids leave.
///
/// `take` gives what was added since the last time, so that a long list can be shown page by page; widths only grow,
/// and the first page decides on the columns: where those of later ones need more, their prose gets what is left.
class TextTable {
 public:
  using Column = operate::Column;
  using Cell = operate::Cell;

  /// Without titles there is no headline.
  TextTable(const std::vector<Column>& columns, Screen screen);
  /// For rows of records; the first one brings the columns.
  explicit TextTable(RowsView view) : view_(std::move(view)) {}

  /// One cell for each column. Line breaks and control characters in them are shown escaped.
  void add(std::vector<Cell> cells);
  void add_record(const operate::Row& row);
  /// The rows since the last time as lines, the headline before the first ones; empty when there are none.
  std::string take();

 private:
  /// A column, and what has come of it so far.
  struct Shown {
    Column column;
    Cell title;
    std::size_t whole;      ///< as wide as its widest cell
    std::size_t width = 0;  ///< on this page
    bool empty = true;      ///< "-" is nothing too
    bool left_out = false;

    std::size_t least() const;
  };

  void set_columns(const std::vector<Column>& columns);
  /// How wide a line is with these widths of its columns.
  template <typename Width>
  std::size_t line_width(Width width) const;
  /// Leaves out the column that is spared most easily, of all or of the empty ones; false: there is none.
  bool leave_one_out(bool empty);
  void fit();
  void append_line(std::string& out, const std::vector<Cell>& cells) const;

  RowsView view_;
  std::vector<Shown> columns_;
  std::vector<std::vector<Cell>> rows_;
  bool headline_ = false;
  bool begun_ = false;  ///< a page was taken
};

/// The columns of tables about a fleet.
inline std::vector<std::string_view> host_columns() {
  return {"HOST", "STATE", "UP", "JOBS", "RUNNING", "DONE/S", "FAILED/S", "SEEN", "VERSION", "LOG", "HTTP"};
}
inline std::vector<std::string_view> job_columns() {
  return {"JOB",    "QUEUE",    "STATE", "HOSTS", "WORKERS", "LIMIT",  "RUNNING",
          "DONE/S", "FAILED/S", "MEAN",  "P95",   "HANDLER", "PLUGIN", "STEERED"};
}
inline std::vector<std::string_view> running_columns() {
  return {"MESSAGE", "SINCE", "LEFT", "HOST", "WORKER", "JOB", "HANDLER", "ATTEMPT"};
}

template <typename Record>
std::string rows_of(const std::vector<Record>& records, WallTime now, RowsView view) {
  TextTable table(std::move(view));
  for (const Record& record : records) {
    table.add_record(operate::row_of(record, now));
  }
  return table.take();
}

/// A record for programs, as an object on lines of its own.
template <typename Record>
std::string json_of(const Record& record, WallTime now) {
  return json_text([&](JsonWriter& json) { operate::write_object(json, record, now); });
}

/// A record for people: a line for each field, its title in small letters.
std::string facts_of(const operate::Row& row, bool colours, Colour titles = Colour::none);

/// "a\nb\n" as its lines.
std::vector<std::string> lines_of(const std::string& text);

/// Shows records to programs as an array, and to people as rows or, where there are none, by saying `nothing`.
template <typename Record>
void show_all(const std::vector<Record>& records, WallTime now, const std::vector<std::string_view>& columns,
              std::string_view nothing, Console& console) {
  if (console.shows_json()) {
    console.out(json_text([&](JsonWriter& json) { operate::write_all(json, records, now); }));
  } else if (records.empty()) {
    console.note(nothing);
  } else {
    console.out(rows_of(records, now, {.screen = console.screen(), .columns = columns}));
  }
}

/// One message whole: a line for each field, then the body.
std::string message_text(const queue::StoredMessage& message, WallTime now, bool colours);
/// The same of its row, and of what else there is to tell.
std::string message_text(operate::Row row, const queue::Message& message, bool colours);

/// Prints one message, as JSON or as text.
Exit show_message(const queue::StoredMessage& message, WallTime now, Console& console);

/// Shows programs a list that nobody has whole at any moment: as the first member of an object, or without a key as an
/// array. One thread.
class JsonList {
 public:
  JsonList(std::string_view key, Console& console) : key_(key), console_(console) {}

  /// An element, which `write` writes.
  template <typename Write>
  void add(Write write) {
    begin();
    write(json_);
  }
  /// Lets what there is be seen.
  void flush() { console_.out(json_.take_text()); }
  /// Ends the list, and the object with these members.
  template <typename... Members>
  void finish(const Members&... members) {
    begin();
    json_.end_array();
    if (!key_.empty()) {
      put_members(json_, members...);
      json_.end_object();
    }
    console_.out(json_.take_line());
  }

 private:
  void begin();

  const std::string_view key_;
  Console& console_;
  JsonWriter json_{JsonWriter::Layout::indented};
  bool begun_ = false;
};

/// The same for records, and to people as rows.
class RecordStream {
 public:
  RecordStream(std::string_view key, std::vector<std::string_view> columns, Console& console)
      : console_(console),
        list_(key, console),
        table_(RowsView{.screen = console.screen(), .columns = std::move(columns)}) {}

  template <typename Record>
  void add(const Record& record, WallTime now) {
    if (console_.shows_text()) {
      table_.add_record(operate::row_of(record, now));
    } else {
      list_.add([&](JsonWriter& json) { operate::write_object(json, record, now); });
    }
  }
  void flush();
  template <typename... Members>
  void finish(const Members&... members) {
    if (console_.shows_json()) {
      list_.finish(members...);
    }
  }

 private:
  Console& console_;
  JsonList list_;
  TextTable table_;
};

}  // namespace sluice::cli
