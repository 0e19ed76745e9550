#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

/// Reads JSON (RFC 8259) by asking for what should come next, without building a tree, so that decoders look like the
/// shape of what they decode and numbers stay text.
///
/// Every reading function returns false on failure, which sticks: from then on all of them return false, and `failed()`
/// tells a failure from the end of an object or array. The text is borrowed. A value type in use by one thread.
class JsonReader {
 public:
  enum class Kind { nothing, object, array, string, number, boolean, null };
  /// What to do about bytes that are not UTF-8 and about lone surrogates in escapes.
  enum class BadText { replace, refuse };

  JsonReader(std::string_view text, std::size_t max_depth, BadText bad_text)
      : text_(text), max_depth_(max_depth), bad_text_(bad_text) {}

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
  std::size_t offset() const { return at_; }
  /// "line 3, column 14", both from 1, columns in bytes: the same place.
  std::string place() const;

 private:
  void skip_space();
  bool begin(char bracket);
  // Passes the comma or the closing bracket; false at the end of the container and on failure.
  bool next(char closing);
  // Reads a string whose opening quote has been passed; appends to `out`.
  bool read_rest_of_string(std::string& out);
  bool read_escape(std::string& out);
  bool read_unicode_escape(std::string& out);
  bool read_hex4(unsigned& unit);
  bool read_odd_byte(std::string& out);
  bool skip_string();
  bool skip_members();
  bool skip_elements();
  bool read_digits();
  bool read_word(std::string_view word);

  std::string_view text_;
  std::size_t max_depth_;
  BadText bad_text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  // True right after an opening bracket: no comma is due.
  bool fresh_ = false;
  std::string name_;
  std::string_view written_name_;
  std::string reason_;
};

}  // namespace sluice
