#include "base/text/json_reader.hpp"

#include <algorithm>

#include "base/text/json_string.hpp"
#include "base/text/plain_json.hpp"
#include "base/text/utf8.hpp"

namespace sluice {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_high_surrogate(unsigned unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
bool is_low_surrogate(unsigned unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

}  // namespace

bool JsonReader::fail(std::string_view reason) {
  if (reason_.empty()) {
    reason_ = reason;
  }
  return false;
}

std::string JsonReader::place() const {
  const std::string_view before = text_.substr(0, std::min(at_, text_.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return "line " + std::to_string(line) + ", column " + std::to_string(before.size() - line_start + 1);
}

void JsonReader::skip_space() {
  const char* const text = text_.data();
  const std::size_t size = text_.size();
  std::size_t at = at_;
  while (at < size && text[at] <= ' ' &&
         (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r')) {
    ++at;
  }
  at_ = at;
}

JsonReader::Kind JsonReader::peek() {
  if (failed()) {
    return Kind::nothing;
  }
  skip_space();
  switch (at_ < text_.size() ? text_[at_] : '\0') {
    case '{':
      return Kind::object;
    case '[':
      return Kind::array;
    case '"':
      return Kind::string;
    case 't':
    case 'f':
      return Kind::boolean;
    case 'n':
      return Kind::null;
    case '-':
      return Kind::number;
    default:
      return at_ < text_.size() && is_digit(text_[at_]) ? Kind::number : Kind::nothing;
  }
}

bool JsonReader::begin(char bracket) {
  if (failed()) {
    return false;
  }
  skip_space();
  if (at_ >= text_.size() || text_[at_] != bracket) {
    return fail(bracket == '{' ? "an object is expected" : "an array is expected");
  }
  if (depth_ == max_depth_) {
    return fail("it is nested too deep");
  }
  ++at_;
  ++depth_;
  fresh_ = true;
  return true;
}

bool JsonReader::begin_object() { return begin('{'); }
bool JsonReader::begin_array() { return begin('['); }

bool JsonReader::next(char closing) {
  if (failed()) {
    return false;
  }
  skip_space();
  const bool first = fresh_;
  fresh_ = false;
  if (at_ >= text_.size()) {
    return fail("the text ends too early");
  }
  if (text_[at_] == closing) {
    ++at_;
    --depth_;
    return false;
  }
  if (first) {
    return true;
  }
  if (text_[at_] != ',') {
    return fail(closing == '}' ? "',' or '}' is expected" : "',' or ']' is expected");
  }
  ++at_;
  return true;
}

bool JsonReader::next_element() { return next(']'); }

bool JsonReader::next_member(std::string_view& name) {
  if (!next('}')) {
    return false;
  }
  skip_space();
  if (at_ >= text_.size() || text_[at_] != '"') {
    return fail("a name in quotes is expected");
  }
  const std::size_t start = at_;
  ++at_;
  const std::size_t run = plain_run(text_.substr(at_));
  if (at_ + run < text_.size() && text_[at_ + run] == '"') {
    name = text_.substr(at_, run);
    at_ += run + 1;
  } else {
    name_.clear();
    if (!read_rest_of_string(name_)) {
      return false;
    }
    name = name_;
  }
  written_name_ = text_.substr(start, at_ - start);
  skip_space();
  if (at_ >= text_.size() || text_[at_] != ':') {
    return fail("':' is expected");
  }
  ++at_;
  return true;
}

bool JsonReader::read_string(std::string& out) {
  out.clear();
  if (peek() != Kind::string) {
    return fail("a string is expected");
  }
  ++at_;
  return read_rest_of_string(out);
}

bool JsonReader::read_rest_of_string(std::string& out) {
  while (true) {
    const std::size_t run = plain_run(text_.substr(at_));
    out.append(text_, at_, run);
    at_ += run;
    if (at_ >= text_.size()) {
      return fail("the text ends within a string");
    }
    const char c = text_[at_];
    if (c == '"') {
      ++at_;
      return true;
    }
    if (!(c == '\\' ? read_escape(out) : read_odd_byte(out))) {
      return false;
    }
  }
}

bool JsonReader::read_odd_byte(std::string& out) {
  if (static_cast<unsigned char>(text_[at_]) < 0x20) {
    return fail("a control character must be escaped");
  }
  const std::size_t length = utf8_length(text_.substr(at_));
  if (length > 0) {
    out.append(text_, at_, length);
    at_ += length;
    return true;
  }
  if (bad_text_ == BadText::refuse) {
    return fail("the text is not UTF-8");
  }
  out += kReplacementCharacter;
  ++at_;
  return true;
}

bool JsonReader::read_escape(std::string& out) {
  const char c = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  if (c == 'u') {
    return read_unicode_escape(out);
  }
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const std::size_t which = c == '\0' ? std::string_view::npos : kEscapes.find(c);
  if (which == std::string_view::npos) {
    return fail("there is no such escape");
  }
  out.push_back(kMeanings[which]);
  at_ += 2;
  return true;
}

bool JsonReader::read_unicode_escape(std::string& out) {
  const std::size_t start = at_;
  unsigned unit = 0;
  if (!read_hex4(unit)) {
    return false;
  }
  if (is_high_surrogate(unit) && text_.substr(at_, 2) == "\\u") {
    const std::size_t second = at_;
    unsigned low = 0;
    if (!read_hex4(low)) {
      return false;
    }
    if (is_low_surrogate(low)) {
      append_utf8(out, 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
      return true;
    }
    at_ = second;
  }
  if (!is_high_surrogate(unit) && !is_low_surrogate(unit)) {
    append_utf8(out, unit);
    return true;
  }
  if (bad_text_ == BadText::refuse) {
    at_ = start;
    return fail("half a surrogate pair is no character");
  }
  out += kReplacementCharacter;
  return true;
}

bool JsonReader::read_hex4(unsigned& unit) {
  if (text_.size() - at_ < 6) {
    return fail("four hexadecimal digits are expected");
  }
  unit = 0;
  for (std::size_t i = at_ + 2; i < at_ + 6; ++i) {
    const char c = text_[i];
    const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (!letter && !is_digit(c)) {
      return fail("four hexadecimal digits are expected");
    }
    unit = unit * 16 + (letter ? (static_cast<unsigned>(c) | 0x20u) - 'a' + 10 : static_cast<unsigned>(c - '0'));
  }
  at_ += 6;
  return true;
}

bool JsonReader::read_digits() {
  const std::size_t start = at_;
  while (at_ < text_.size() && is_digit(text_[at_])) {
    ++at_;
  }
  return at_ > start || fail("a digit is expected");
}

bool JsonReader::read_number(std::string_view& text) {
  if (peek() != Kind::number) {
    return fail("a number is expected");
  }
  const auto passes = [this](char one, char other) {
    const bool found = at_ < text_.size() && (text_[at_] == one || text_[at_] == other);
    at_ += found ? 1 : 0;
    return found;
  };
  const std::size_t start = at_;
  passes('-', '-');
  const bool zero = at_ < text_.size() && text_[at_] == '0';
  if (zero) {
    ++at_;
    if (at_ < text_.size() && is_digit(text_[at_])) {
      return fail("a number must not begin with 0");
    }
  } else if (!read_digits()) {
    return false;
  }
  if (passes('.', '.') && !read_digits()) {
    return false;
  }
  if (passes('e', 'E')) {
    passes('+', '-');
    if (!read_digits()) {
      return false;
    }
  }
  text = text_.substr(start, at_ - start);
  return true;
}

bool JsonReader::read_word(std::string_view word) {
  for (const char letter : word) {
    if (at_ >= text_.size() || text_[at_] != letter) {
      return fail("true, false or null is expected");
    }
    ++at_;
  }
  return true;
}

bool JsonReader::read_bool(bool& out) {
  if (peek() != Kind::boolean) {
    return fail("true or false is expected");
  }
  out = text_[at_] == 't';
  return read_word(out ? "true" : "false");
}

bool JsonReader::read_null() {
  if (peek() != Kind::null) {
    return fail("null is expected");
  }
  return read_word("null");
}

// What a plain string holds need not be copied to be passed over.
bool JsonReader::skip_string() {
  const std::size_t run = plain_run(text_.substr(at_ + 1));
  if (at_ + 1 + run < text_.size() && text_[at_ + 1 + run] == '"') {
    at_ += run + 2;
    return true;
  }
  name_.clear();
  return read_string(name_);
}

bool JsonReader::skip_members() {
  std::string_view name;
  begin_object();
  while (next_member(name) && skip()) {
  }
  return !failed();
}

bool JsonReader::skip_elements() {
  begin_array();
  while (next_element() && skip()) {
  }
  return !failed();
}

bool JsonReader::skip() {
  // Most is passed over at one go. What is not is read from its beginning, within it piece by piece.
  if (const std::size_t length = depth_ == 0 && !failed() ? plain_json(text_.substr(at_), max_depth_) : 0; length > 0) {
    at_ += length;
    return true;
  }
  std::string_view text;
  bool flag = false;
  switch (peek()) {
    case Kind::object:
      return skip_members();
    case Kind::array:
      return skip_elements();
    case Kind::string:
      return skip_string();
    case Kind::number:
      return read_number(text);
    case Kind::boolean:
      return read_bool(flag);
    case Kind::null:
      return read_null();
    case Kind::nothing:
      break;
  }
  return fail(at_ < text_.size() ? "a value is expected" : "the text ends too early");
}

bool JsonReader::read_raw(std::string_view& text) {
  peek();  // passes the white space before the value
  const std::size_t start = at_;
  if (!skip()) {
    return false;
  }
  text = text_.substr(start, at_ - start);
  return true;
}

bool JsonReader::finish() {
  if (failed()) {
    return false;
  }
  skip_space();
  return at_ == text_.size() || fail("there is more text after the value");
}

}  // namespace sluice
