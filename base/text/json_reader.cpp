#include "base/text/json_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/text/json_check.hpp"
#include "base/text/json_string.hpp"
#include "base/text/number.hpp"
#include "base/text/utf8.hpp"

namespace sluice {

namespace {

constexpr std::string_view kTooEarly = "the text ends too early";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_high_surrogate(unsigned unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
bool is_low_surrogate(unsigned unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

void append_to(std::string* out, unsigned character) {
  if (out != nullptr) {
    append_utf8(*out, character);
  }
}

}  // namespace

bool JsonReader::fail(std::string_view reason) {
  if (reason_.empty()) {
    reason_ = reason;
  }
  return false;
}

std::string JsonReader::place() const {
  const std::string_view before(begin_, offset());
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return "line " + std::to_string(line) + ", column " + std::to_string(before.size() - line_start + 1);
}

JsonReader::Kind JsonReader::peek() {
  if (failed()) {
    return Kind::nothing;
  }
  const char first = look();
  switch (first) {
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
    default:
      return first == '-' || is_digit(first) ? Kind::number : Kind::nothing;
  }
}

bool JsonReader::begin(char bracket) {
  if (failed()) {
    return false;
  }
  if (look() != bracket) {
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
  const char found = look();
  const bool fresh = std::exchange(fresh_, false);
  if (found == ',' && !fresh) {
    ++at_;
    return true;
  }
  if (found == closing) {
    ++at_;
    --depth_;
    return false;
  }
  if (at_ == end_) {
    return fail(kTooEarly);
  }
  return fresh || fail(closing == '}' ? "',' or '}' is expected" : "',' or ']' is expected");
}

bool JsonReader::next_element() { return next(']'); }

bool JsonReader::next_member(std::string_view& name) {
  if (!next('}')) {
    return false;
  }
  const bool quoted = look() == '"';
  const char* const start = at_;
  const char* const plain_end = quoted ? start + 1 + plain_run({start + 1, end_}) : end_;
  if (plain_end != end_ && *plain_end == '"') {
    name = {start + 1, plain_end};
    at_ = plain_end + 1;
  } else {
    name_.clear();
    if (!pass_name(&name_)) {
      return false;
    }
    name = name_;
  }
  written_name_ = since(start);
  return pass_colon();
}

bool JsonReader::read_string(std::string& out) {
  out.clear();
  return peek() == Kind::string ? pass_string(&out) : fail("a string is expected");
}

bool JsonReader::read_number(std::string_view& text) {
  if (peek() != Kind::number) {
    return fail("a number is expected");
  }
  const char* const start = at_;
  if (!pass_number()) {
    return false;
  }
  text = since(start);
  return true;
}

bool JsonReader::read_bool(bool& out) {
  if (peek() != Kind::boolean) {
    return fail("true or false is expected");
  }
  out = *at_ == 't';
  return pass_word(out ? "true" : "false");
}

bool JsonReader::read_null() { return peek() == Kind::null ? pass_word("null") : fail("null is expected"); }

bool JsonReader::skip() {
  const Kind kind = peek();
  switch (kind) {
    case Kind::object:
    case Kind::array:
      begin(kind == Kind::object ? '{' : '[');
      while (next(kind == Kind::object ? '}' : ']')) {
        const bool named = kind == Kind::array || (pass_name(nullptr) && pass_colon());
        if (!named || !skip()) {
          return false;
        }
      }
      return !failed();
    case Kind::string:
      return pass_string(nullptr);
    case Kind::number:
      return pass_number();
    case Kind::boolean:
      return pass_word(*at_ == 't' ? "true" : "false");
    case Kind::null:
      return pass_word("null");
    case Kind::nothing:
      break;
  }
  return fail(at_ == end_ ? kTooEarly : "a value is expected");
}

bool JsonReader::read_raw(std::string_view& text) {
  peek();  // passes the white space before the value
  const char* const start = at_;
  if (!skip()) {
    return false;
  }
  text = since(start);
  return true;
}

bool JsonReader::finish() {
  if (failed()) {
    return false;
  }
  look();
  return at_ == end_ || fail("there is more text after the value");
}

bool JsonReader::pass_rest_of_string(std::string* out) {
  while (true) {
    const char* const first = at_;
    at_ += plain_run(left());
    append(out, since(first));
    if (at_ == end_) {
      return fail("the text ends within a string");
    }
    if (*at_ == '"') {
      ++at_;
      return true;
    }
    if (!(*at_ == '\\' ? pass_escape(out) : pass_odd_byte(out))) {
      return false;
    }
  }
}

bool JsonReader::pass_odd_byte(std::string* out) {
  if (static_cast<unsigned char>(*at_) < 0x20) {
    return fail("a control character must be escaped");
  }
  const std::size_t length = utf8_length(left());
  if (length == 0 && bad_text_ == BadText::refuse) {
    return fail("the text is not UTF-8");
  }
  append(out, length > 0 ? left().substr(0, length) : kReplacementCharacter);
  at_ += std::max<std::size_t>(length, 1);
  return true;
}

bool JsonReader::pass_escape(std::string* out) {
  const char c = left().size() > 1 ? at_[1] : '\0';
  if (c == 'u') {
    return pass_unicode_escape(out);
  }
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const std::size_t which = c == '\0' ? std::string_view::npos : kEscapes.find(c);
  if (which == std::string_view::npos) {
    return fail("there is no such escape");
  }
  append(out, kMeanings.substr(which, 1));
  at_ += 2;
  return true;
}

bool JsonReader::pass_unicode_escape(std::string* out) {
  const char* const start = at_;
  unsigned unit = 0;
  if (!pass_hex4(unit)) {
    return false;
  }
  if (is_high_surrogate(unit) && left().starts_with("\\u")) {
    const char* const second = at_;
    unsigned low = 0;
    if (!pass_hex4(low)) {
      return false;
    }
    if (is_low_surrogate(low)) {
      append_to(out, 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
      return true;
    }
    at_ = second;
  }
  if (!is_high_surrogate(unit) && !is_low_surrogate(unit)) {
    append_to(out, unit);
    return true;
  }
  if (bad_text_ == BadText::refuse) {
    at_ = start;
    return fail("half a surrogate pair is no character");
  }
  append(out, kReplacementCharacter);
  return true;
}

bool JsonReader::pass_hex4(unsigned& unit) {
  if (left().size() < 6 || std::from_chars(at_ + 2, at_ + 6, unit, 16).ptr != at_ + 6) {
    return fail("four hexadecimal digits are expected");
  }
  at_ += 6;
  return true;
}

bool JsonReader::pass_digits() {
  const char* const first = at_;
  at_ = std::find_if_not(at_, end_, is_digit);
  return at_ != first || fail("a digit is expected");
}

bool JsonReader::pass_number() {
  at_ += *at_ == '-' ? 1 : 0;
  if (left().starts_with('0')) {
    ++at_;
    if (at_ != end_ && is_digit(*at_)) {
      return fail("a number must not begin with 0");
    }
  } else if (!pass_digits()) {
    return false;
  }
  if (left().starts_with('.')) {
    ++at_;
    if (!pass_digits()) {
      return false;
    }
  }
  if (left().starts_with('e') || left().starts_with('E')) {
    ++at_;
    at_ += left().starts_with('+') || left().starts_with('-') ? 1 : 0;
    return pass_digits();
  }
  return true;
}

bool JsonReader::pass_word(std::string_view wanted) {
  const auto [differs, rest] = std::mismatch(at_, end_, wanted.begin(), wanted.end());
  at_ = differs;
  return rest == wanted.end() || fail("true, false or null is expected");
}

namespace {

/// The parts of a pointer, unescaped.
std::vector<std::string> parts_of(std::string_view pointer) {
  std::vector<std::string> parts;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string_view escaped = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(escaped.size());
    std::string& part = parts.emplace_back();
    for (std::size_t at = 0; at < escaped.size(); ++at) {
      const bool escape = escaped[at] == '~' && at + 1 < escaped.size();
      part += escape ? (escaped[++at] == '0' ? '~' : '/') : escaped[at];
    }
  }
  return parts;
}

/// An element's number as RFC 6901 writes it: no sign, no leading zero.
std::optional<std::uint64_t> index_of(const std::string& part) {
  return part == "0" || !part.starts_with('0') ? parse_number<std::uint64_t>(part) : std::nullopt;
}

/// Moves to the value that `part` names in the object or array that begins here; false: there is none.
bool step_into(JsonReader& reader, const std::string& part) {
  if (reader.peek() == JsonReader::Kind::object) {
    std::string_view name;
    reader.begin_object();
    while (reader.next_member(name)) {
      if (name == part) {
        return true;
      }
      reader.skip();
    }
    return false;
  }
  const auto index = index_of(part);
  if (reader.peek() != JsonReader::Kind::array || !index) {
    return false;
  }
  reader.begin_array();
  for (std::uint64_t at = 0; reader.next_element(); ++at) {
    if (at == *index) {
      return true;
    }
    reader.skip();
  }
  return false;
}

}  // namespace

std::optional<JsonScalar> json_at(std::string_view json, std::string_view pointer) {
  JsonReader reader(json, kJsonDepth, JsonReader::BadText::refuse);
  for (const std::string& part : parts_of(pointer)) {
    if (!step_into(reader, part)) {
      return std::nullopt;
    }
  }
  JsonScalar found{reader.peek(), {}};
  std::string_view written;
  if (found.kind == JsonReader::Kind::string) {
    reader.read_string(found.text);
  } else if (found.kind == JsonReader::Kind::number || found.kind == JsonReader::Kind::boolean) {
    reader.read_raw(written);
    found.text = written;
  }
  return reader.failed() ? std::nullopt : std::optional(std::move(found));
}

}  // namespace sluice
