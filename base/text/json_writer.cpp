#include "base/text/json_writer.hpp"

#include <algorithm>

#include "base/text/decimal.hpp"
#include "base/text/json_check.hpp"
#include "base/text/json_reader.hpp"
#include "base/text/json_string.hpp"
#include "base/text/visible.hpp"
#include "base/timestamp.hpp"

namespace sluice {

namespace {

/// As it is written, but for what JSON lets stand and a terminal obeys or hides: that becomes escapes.
void append_token(std::string& out, std::string_view token) {
  const bool plain = std::all_of(token.begin(), token.end(), [](char byte) { return byte >= 0 && byte != 0x7f; });
  if (plain) {
    out += token;
  } else {
    append_visible(out, token);
  }
}

}  // namespace

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (!first_) {
    text_ += ',';
  }
  if (depth_ > 0) {
    new_line();
  }
  first_ = false;
}

void JsonWriter::new_line() {
  if (layout_ == Layout::indented) {
    text_ += '\n';
    text_.append(2 * depth_, ' ');
  }
}

void JsonWriter::open(char bracket) {
  before_value();
  text_ += bracket;
  ++depth_;
  first_ = true;
}

void JsonWriter::close(char bracket) {
  --depth_;
  if (!first_) {
    new_line();
  }
  text_ += bracket;
  first_ = false;
}

void JsonWriter::key(std::string_view name) {
  before_value();
  append_string(name);
  after_name();
}

void JsonWriter::after_name() {
  text_ += layout_ == Layout::indented ? ": " : ":";
  after_key_ = true;
}

void JsonWriter::value(std::string_view text) {
  before_value();
  append_string(text);
}

void JsonWriter::value(WallTime time) { value(format_timestamp(time)); }

void JsonWriter::append_string(std::string_view text) {
  strings_ == Strings::visible ? append_visible_json(text_, text) : append_json_string(text_, text);
}

void JsonWriter::member(std::string_view name, double number, int digits) {
  key(name);
  word(fixed_decimal(number, digits));
}

void JsonWriter::word(std::string_view text) {
  before_value();
  text_ += text;
}

void JsonWriter::raw(std::string_view json) {
  JsonReader reader(json, kJsonDepth, JsonReader::BadText::refuse);
  copy(reader);
}

void JsonWriter::copy(JsonReader& reader) {
  std::string_view text;
  switch (reader.peek()) {
    case JsonReader::Kind::object:
      reader.begin_object();
      begin_object();
      while (reader.next_member(text)) {
        before_value();
        append_token(text_, reader.name_as_written());
        after_name();
        copy(reader);
      }
      end_object();
      return;
    case JsonReader::Kind::array:
      reader.begin_array();
      begin_array();
      while (reader.next_element()) {
        copy(reader);
      }
      end_array();
      return;
    default:
      reader.read_raw(text);
      before_value();
      append_token(text_, text);
  }
}

std::string JsonWriter::take_line() {
  std::string line = std::move(text_);
  line += '\n';
  *this = JsonWriter(layout_, strings_);
  return line;
}

}  // namespace sluice
