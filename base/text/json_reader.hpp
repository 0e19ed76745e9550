#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/text/json_string.hpp"

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
      : begin_(text.data()), end_(begin_ + text.size()), max_depth_(max_depth), bad_text_(bad_text) {}

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
  std::size_t offset() const { return static_cast<std::size_t>(at_ - begin_); }
  /// "line 3, column 14", both from 1, columns in bytes: the same place.
  std::string place() const;

 private:
  // The first character behind white space, which is passed; zero at the end.
  char look() {
    for (; at_ != end_; ++at_) {
      if (const char found = *at_; found > ' ' || (found != ' ' && found != '\n' && found != '\t' && found != '\r')) {
        return found;
      }
    }
    return '\0';
  }
  std::string_view left() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }
  std::string_view since(const char* start) const { return {start, static_cast<std::size_t>(at_ - start)}; }

  // Each passes what it is named after; on failure the reader stands where that is wrong.
  bool begin(char bracket);
  // The comma or the closing bracket; false at the end of the container and on failure.
  bool next(char closing);
  bool pass_name(std::string* out) { return look() == '"' ? pass_string(out) : fail("a name in quotes is expected"); }
  bool pass_colon() {
    if (look() != ':') {
      return fail("':' is expected");
    }
    ++at_;
    return true;
  }
  // From the quote that `look` has shown. Its characters are appended to `out`, unless that is null.
  bool pass_string(std::string* out) {
    const char* const first = ++at_;
    at_ += plain_run(left());
    append(out, since(first));
    if (at_ != end_ && *at_ == '"') {
      ++at_;
      return true;
    }
    return pass_rest_of_string(out);
  }
  bool pass_rest_of_string(std::string* out);
  static void append(std::string* out, std::string_view characters) {
    if (out != nullptr) {
      *out += characters;
    }
  }
  bool pass_odd_byte(std::string* out);
  bool pass_escape(std::string* out);
  bool pass_unicode_escape(std::string* out);
  bool pass_hex4(unsigned& unit);
  bool pass_number();
  bool pass_digits();
  bool pass_word(std::string_view wanted);

  const char* begin_;
  const char* end_;
  const char* at_ = begin_;
  std::size_t max_depth_;
  BadText bad_text_;
  std::size_t depth_ = 0;
  // True right after an opening bracket: no comma is due.
  bool fresh_ = false;
  std::string name_;
  std::string_view written_name_;
  std::string reason_;
};

/// A value in a JSON text. A value.
struct JsonScalar {
  JsonReader::Kind kind = JsonReader::Kind::nothing;
  std::string text;  ///< a string's characters, a number or truth value as it is written; of anything else empty
};

/// What an RFC 6901 pointer leads to in a text that is JSON; nothing: it leads nowhere. Pure, thread-safe.
std::optional<JsonScalar> json_at(std::string_view json, std::string_view pointer);

}  // namespace sluice
