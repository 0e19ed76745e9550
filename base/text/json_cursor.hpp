#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/text/json_string.hpp"

namespace sluice {

/// A place in a text, and the pieces that JSON (RFC 8259) is made of there. Each function passes what it is named after
/// and returns nothing, or what is wrong at the place where it then stands. It is all that is known here of how JSON is
/// written; JsonReader asks in which order.
///
/// A value of one thread, small enough to live in registers while a text is passed over. The text is borrowed.
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
    return go(rest_of_string(at_, end_, bad_text, out));
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
  Problem number() { return go(number_from(at_, end_)); }
  Problem word(std::string_view wanted) {
    if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(wanted)) {
      at_ += wanted.size();
      return nullptr;
    }
    at_ = std::mismatch(at_, end_, wanted.begin(), wanted.end()).first;
    return "true, false or null is expected";
  }
  /// A value that holds no others and begins with `first`, which `peek` has shown.
  Problem scalar(char first, BadText bad_text) {
    switch (first) {
      case '"':
        return string(bad_text, nullptr);
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        break;
    }
    if (first == '-' || is_digit(first)) {
      return number();
    }
    return at_end() ? kTooEarly : "a value is expected";
  }

  static constexpr bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  static constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

 private:
  static constexpr Problem kTooEarly = "the text ends too early";

  struct Stop {
    const char* at;
    Problem problem;
  };
  Problem go(Stop stop) {
    at_ = stop.at;
    return stop.problem;
  }

  // They take places and no cursor, so that a cursor never has to lie in memory.
  static Stop rest_of_string(const char* at, const char* end, BadText bad_text, std::string* out);
  static Stop number_from(const char* at, const char* end);

  const char* at_;
  const char* end_;
};

}  // namespace sluice
