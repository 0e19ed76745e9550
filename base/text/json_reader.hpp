#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/text/json_cursor.hpp"

namespace sluice {

/// Reads JSON (RFC 8259) by asking for what should come next, without building a tree, so that decoders look like the
/// shape of what they decode and numbers stay text.
///
/// Every reading function returns false on failure, which sticks: from then on all of them return false, and `failed()`
/// tells a failure from the end of an object or array. The text is borrowed. A value type in use by one thread.
class JsonReader {
 public:
  enum class Kind { nothing, object, array, string, number, boolean, null };
  using BadText = JsonCursor::BadText;

  JsonReader(std::string_view text, std::size_t max_depth, BadText bad_text)
      : text_(text), cursor_(text), max_depth_(max_depth), bad_text_(bad_text) {}

  /// The kind of the value that begins here, by its first character; nothing at the end or where no value can begin.
  Kind peek();

  bool begin_object();
  /// Moves to the next member and gives its name, which holds until the next call of any kind. False at the end.
  bool next_member(std::string_view& name);
  /// The last member's name as written, quotes included; borrowed from the reader's text.
  std::string_view name_as_written() const { return written_name_; }
  bool begin_array();
  /// Moves to the next element. False at the end.
  bool next_element();

  bool read_string(std::string& out);
  /// The number's text, as written; borrowed from the reader's text.
  bool read_number(std::string_view& text);
  bool read_bool(bool& out);
  bool read_null();
  /// Passes over any value, checking it all the same.
  bool skip();
  /// The same, and gives the value's text as written; borrowed from the reader's text.
  bool read_raw(std::string_view& text);
  /// True when nothing but white space is left.
  bool finish();

  /// Fails at this place with a reason of the caller's, unless it failed before. Returns false.
  bool fail(std::string_view reason);
  bool failed() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }
  /// How many bytes lie before the place of the failure; all of them when the text ended too early.
  std::size_t offset() const { return static_cast<std::size_t>(cursor_.at() - text_.data()); }
  /// "line 3, column 14", both from 1, columns in bytes: the same place.
  std::string place() const;

 private:
  // True when there is no problem; otherwise fails with it.
  bool is_fine(JsonCursor::Problem problem) { return problem == nullptr || fail(problem); }
  bool begin(char bracket);
  // Passes the comma or the closing bracket; false at the end of the container and on failure.
  bool next(char closing);
  struct Passed {
    JsonCursor cursor;
    JsonCursor::Problem problem;
  };
  // Passes over the value at `cursor`, which lies within `depth` objects and arrays.
  Passed pass_value(JsonCursor cursor, std::size_t depth) const;

  std::string_view text_;
  JsonCursor cursor_;
  std::size_t max_depth_;
  BadText bad_text_;
  std::size_t depth_ = 0;
  // True right after an opening bracket: no comma is due.
  bool fresh_ = false;
  std::string name_;
  std::string_view written_name_;
  std::string reason_;
};

}  // namespace sluice
