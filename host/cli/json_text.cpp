#include "host/cli/json_text.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>

#include "host/observe/escape.hpp"
#include "host/queue/json_check.hpp"

namespace sluice::cli {

namespace {

namespace json = boost::json;

/// The length of the string, number or word that `json` begins with.
std::size_t token_length(std::string_view json) {
  if (json.front() != '"') {
    return std::min(json.find_first_of(",:]} \t\r\n"), json.size());
  }
  std::size_t at = 1;
  while (json[at] != '"') {
    at += json[at] == '\\' ? 2 : 1;
  }
  return at + 1;
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

void JsonText::raw(std::string_view text) {
  while (!text.empty()) {
    const char byte = text.front();
    if (byte == '{' || byte == '[') {
      open(byte);
    } else if (byte == '}' || byte == ']') {
      close(byte);
    } else if (byte == ':') {
      text_ += layout_ == Layout::indented ? ": " : ":";
      after_key_ = true;
    } else if (byte != ',' && !queue::is_json_space(byte)) {
      const std::size_t length = token_length(text);
      word(text.substr(0, length));
      text.remove_prefix(length);
      continue;
    }
    text.remove_prefix(1);
  }
}

std::string JsonText::take_line() {
  std::string line = std::move(text_);
  line += '\n';
  *this = JsonText(layout_);
  return line;
}

std::string json_string_characters(std::string_view text) {
  return std::string(json::parse(json::string_view(text.data(), text.size())).as_string());
}

}  // namespace sluice::cli
