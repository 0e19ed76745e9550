#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {
class JsonReader;
}

namespace sluice::cli {

/// Writes JSON. Calls come in the order of the text; the caller sees to their balance.
class JsonText {
 public:
  enum class Layout { compact, indented };

  explicit JsonText(Layout layout) : layout_(layout) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name);
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool truth) { word(truth ? "true" : "false"); }
  void value(std::uint64_t number) { word(std::to_string(number)); }
  void value(std::int64_t number) { word(std::to_string(number)); }
  void null() { word("null"); }
  /// Text that is JSON already, laid out anew; every digit of its numbers stays, and strings are as they were
  /// written, but for what would steer a terminal.
  void raw(std::string_view json);
  /// A number as it is written.
  void word(std::string_view text);

  template <typename T>
  void member(std::string_view name, const T& content) {
    key(name);
    value(content);
  }

  /// The text so far, so that a long one can go out in pieces; the writer goes on where it is.
  std::string take_text() { return std::exchange(text_, {}); }
  /// The text so far and a line break; the writer is as new afterwards.
  std::string take_line();

 private:
  void open(char bracket);
  void close(char bracket);
  void before_value();
  void after_name();
  void copy(JsonReader& reader);
  void new_line();

  Layout layout_;
  std::string text_;
  std::size_t depth_ = 0;
  bool first_ = true;  // nothing in this object or array yet
  bool after_key_ = false;
};

/// Valid JSON with the members of every object in the order of their keys' bytes, as Go writes maps; of a key given
/// twice the last. Compact; every digit of its numbers stays, and strings are spelled as `JsonText` spells them.
std::string with_sorted_keys(std::string_view json);

/// JSON text with what Go's encoder escapes beside the necessary: < > & and the line separators U+2028 and U+2029.
std::string escaped_as_go_does(std::string_view json);

}  // namespace sluice::cli
