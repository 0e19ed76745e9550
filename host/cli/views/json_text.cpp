#include "host/cli/views/json_text.hpp"

#include <algorithm>

#include "base/text/json_check.hpp"
#include "base/text/json_reader.hpp"
#include "host/observe/escape.hpp"

namespace sluice::cli {

namespace {

/// As it is written, but for what JSON lets stand and a terminal obeys or hides: that becomes escapes.
void append_token(std::string& out, std::string_view token) {
  const bool plain = std::all_of(token.begin(), token.end(), [](char byte) { return byte >= 0 && byte != 0x7f; });
  if (plain) {
    out += token;
  } else {
    observe::append_visible(out, token);
  }
}

}  // namespace

void JsonText::before_value() {
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

void JsonText::new_line() {
  if (layout_ == Layout::indented) {
    text_ += '\n';
    text_.append(2 * depth_, ' ');
  }
}

void JsonText::open(char bracket) {
  before_value();
  text_ += bracket;
  ++depth_;
  first_ = true;
}

void JsonText::close(char bracket) {
  --depth_;
  if (!first_) {
    new_line();
  }
  text_ += bracket;
  first_ = false;
}

void JsonText::key(std::string_view name) {
  before_value();
  observe::append_json_string(text_, name);
  after_name();
}

void JsonText::after_name() {
  text_ += layout_ == Layout::indented ? ": " : ":";
  after_key_ = true;
}

void JsonText::value(std::string_view text) {
  before_value();
  observe::append_json_string(text_, text);
}

void JsonText::word(std::string_view text) {
  before_value();
  text_ += text;
}

void JsonText::raw(std::string_view json) {
  JsonReader reader(json, kJsonDepth, JsonReader::BadText::refuse);
  copy(reader);
}

void JsonText::copy(JsonReader& reader) {
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

std::string JsonText::take_line() {
  std::string line = std::move(text_);
  line += '\n';
  *this = JsonText(layout_);
  return line;
}

}  // namespace sluice::cli
