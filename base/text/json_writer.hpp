#pragma once

#include <concepts>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace sluice {

class JsonReader;

/// Writes JSON. Calls come in the order of the text; the caller sees to their balance. A value of one thread.
class JsonWriter {
 public:
  enum class Layout { compact, indented };
  enum class Strings {
    visible,  ///< as `append_visible_json` writes them, so that nothing in them steers a terminal
    plain,    ///< as `append_json_string` does, for programs alone
  };

  explicit JsonWriter(Layout layout = Layout::compact, Strings strings = Strings::visible)
      : layout_(layout), strings_(strings) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name);

  void value(std::string_view text);
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool truth) { word(truth ? "true" : "false"); }
  template <std::integral Number>
  void value(Number number) {
    word(std::to_string(number));
  }
  /// RFC 3339.
  void value(WallTime time);
  /// Null where there is none.
  template <typename T>
  void value(const std::optional<T>& content) {
    content ? value(*content) : null();
  }
  template <typename T>
  void value(const std::vector<T>& elements) {
    begin_array();
    for (const T& element : elements) {
      value(element);
    }
    end_array();
  }
  template <typename T, typename Less>
  void value(const std::map<std::string, T, Less>& members) {
    begin_object();
    for (const auto& [name, content] : members) {
      member(name, content);
    }
    end_object();
  }
  void null() { word("null"); }
  /// Text that is JSON already, laid out anew; every digit of its numbers stays, and strings are as they were
  /// written, but for what would steer a terminal.
  void raw(std::string_view json);
  /// A number as it is written, or any other text that is compact JSON.
  void word(std::string_view text);

  template <typename T>
  void member(std::string_view name, const T& content) {
    key(name);
    value(content);
  }
  /// A number with so many digits behind the point.
  void member(std::string_view name, double number, int digits);
  /// Members that are text already: "\"a\":1,\"b\":2".
  void members(std::string_view text) { word(text); }

  /// How long the text is so far.
  std::size_t size() const { return text_.size(); }
  /// The text so far, so that a long one can go out in pieces; the writer goes on where it is.
  std::string take_text() { return std::exchange(text_, {}); }
  /// The text so far and a line break; the writer is as new afterwards.
  std::string take_line();

 private:
  void open(char bracket);
  void close(char bracket);
  void before_value();
  void after_name();
  void append_string(std::string_view text);
  void copy(JsonReader& reader);
  void new_line();

  Layout layout_;
  Strings strings_;
  std::string text_;
  std::size_t depth_ = 0;
  bool first_ = true;  // nothing in this object or array yet
  bool after_key_ = false;
};

}  // namespace sluice
