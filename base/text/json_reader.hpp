#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/text/json_string.hpp"

namespace sluice {

/// A place in a text, and the pieces that JSON (RFC 8259) is made of there. Each function passes what it is named after
/// and returns nothing, or what is wrong at the place where it then stands. It is all that is known here of how JSON is
/// written; JsonReader asks in which order.
///
/// A value of one thread. The text is borrowed.
class JsonCursor {
 public:
  /// What is wrong, as a constant; null: nothing.
  using Problem = const char*;
  /// What to do about bytes that are not UTF-8 and about lone surrogates in escapes.
  enum class BadText { replace, refuse };

  explicit JsonCursor(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  const char* at() const { return at_; }
  bool at_end() const { return at_ == end_; }

  /// The first character behind white space, which is passed; zero at the end. It is not passed itself.
  char peek() {
    for (; at_ != end_; ++at_) {
      const char found = *at_;
      if (found > ' ' || !is_space(found)) {
        return found;
      }
    }
    return '\0';
  }
  /// Passes the character that `peek` has shown.
  void pass() { ++at_; }

  /// What stands between two elements, or behind the last one: `more` says which. Nothing before the `first` one.
  Problem next(char closing, bool first, bool& more) {
    const char found = peek();
    more = true;
    if (found == ',' && !first) {
      ++at_;
      return nullptr;
    }
    if (found == closing) {
      more = false;
      ++at_;
      return nullptr;
    }
    if (at_end()) {
      return kTooEarly;
    }
    return first ? nullptr : closing == '}' ? "',' or '}' is expected" : "',' or ']' is expected";
  }
  /// A member's name, with white space before it.
  Problem name(BadText bad_text, std::string* out) {
    return peek() == '"' ? string(bad_text, out) : "a name in quotes is expected";
  }
  Problem colon() {
    if (peek() != ':') {
      return "':' is expected";
    }
    ++at_;
    return nullptr;
  }

  /// From the quote that `peek` has shown. Its characters are appended to `out`, unless that is null.
  Problem string(BadText bad_text, std::string* out) {
    const char* const first = ++at_;
    at_ += plain_run({at_, static_cast<std::size_t>(end_ - at_)});
    if (out != nullptr) {
      out->append(first, at_);
    }
    if (at_ != end_ && *at_ == '"') {
      ++at_;
      return nullptr;
    }
    return rest_of_string(bad_text, out);
  }
  /// Where the string that `peek` has shown is plain ASCII without escapes: all of it, and it is passed. Otherwise
  /// nothing happens.
  bool plain_string(std::string_view& characters) {
    const std::size_t run = plain_run({at_ + 1, static_cast<std::size_t>(end_ - at_ - 1)});
    if (at_ + 1 + run == end_ || at_[1 + run] != '"') {
      return false;
    }
    characters = {at_ + 1, run};
    at_ += run + 2;
    return true;
  }
  Problem number();
  Problem word(std::string_view wanted) {
    if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(wanted)) {
      at_ += wanted.size();
      return nullptr;
    }
    at_ = std::mismatch(at_, end_, wanted.begin(), wanted.end()).first;
    return "true, false or null is expected";
  }
  static constexpr bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  static constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

  static constexpr Problem kTooEarly = "the text ends too early";

 private:
  Problem rest_of_string(BadText bad_text, std::string* out);

  const char* at_;
  const char* end_;
};

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

/// A value in a JSON text. A value.
struct JsonScalar {
  JsonReader::Kind kind = JsonReader::Kind::nothing;
  std::string text;  ///< a string's characters, a number or truth value as it is written; of anything else empty
};

/// What an RFC 6901 pointer leads to in a text that is JSON; nothing: it leads nowhere. Pure, thread-safe.
std::optional<JsonScalar> json_at(std::string_view json, std::string_view pointer);

}  // namespace sluice
