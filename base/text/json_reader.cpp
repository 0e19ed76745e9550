#include "base/text/json_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <vector>

#include "base/text/json_check.hpp"
#include "base/text/number.hpp"
#include "base/text/utf8.hpp"

namespace sluice {

namespace {

using Problem = JsonCursor::Problem;
using BadText = JsonCursor::BadText;

bool is_high_surrogate(unsigned unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
bool is_low_surrogate(unsigned unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

/// What a string holds that is not plain: escapes, and bytes that are no ASCII.
class OddCharacters {
 public:
  OddCharacters(const char* at, const char* end, BadText bad_text, std::string* out)
      : at_(at), end_(end), bad_text_(bad_text), out_(out) {}

  const char* at() const { return at_; }

  /// To behind the closing quote.
  Problem pass() {
    while (true) {
      const std::size_t run = plain_run(left());
      append({at_, run});
      at_ += run;
      if (at_ == end_) {
        return "the text ends within a string";
      }
      if (*at_ == '"') {
        ++at_;
        return nullptr;
      }
      if (const Problem problem = *at_ == '\\' ? escape() : odd_byte(); problem != nullptr) {
        return problem;
      }
    }
  }

 private:
  std::string_view left() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }
  void append(std::string_view characters) {
    if (out_ != nullptr) {
      *out_ += characters;
    }
  }
  void append_character(unsigned character) {
    if (out_ != nullptr) {
      append_utf8(*out_, character);
    }
  }

  Problem odd_byte() {
    if (static_cast<unsigned char>(*at_) < 0x20) {
      return "a control character must be escaped";
    }
    const std::size_t length = utf8_length(left());
    if (length == 0 && bad_text_ == BadText::refuse) {
      return "the text is not UTF-8";
    }
    append(length > 0 ? left().substr(0, length) : std::string_view(kReplacementCharacter));
    at_ += length > 0 ? length : 1;
    return nullptr;
  }

  Problem escape() {
    const char c = left().size() > 1 ? at_[1] : '\0';
    if (c == 'u') {
      return unicode_escape();
    }
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const std::size_t which = c == '\0' ? std::string_view::npos : kEscapes.find(c);
    if (which == std::string_view::npos) {
      return "there is no such escape";
    }
    append(kMeanings.substr(which, 1));
    at_ += 2;
    return nullptr;
  }

  Problem unicode_escape() {
    const char* const start = at_;
    unsigned unit = 0;
    if (const Problem problem = hex4(unit); problem != nullptr) {
      return problem;
    }
    if (is_high_surrogate(unit) && left().starts_with("\\u")) {
      const char* const second = at_;
      unsigned low = 0;
      if (const Problem problem = hex4(low); problem != nullptr) {
        return problem;
      }
      if (is_low_surrogate(low)) {
        append_character(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
        return nullptr;
      }
      at_ = second;
    }
    if (!is_high_surrogate(unit) && !is_low_surrogate(unit)) {
      append_character(unit);
      return nullptr;
    }
    if (bad_text_ == BadText::refuse) {
      at_ = start;
      return "half a surrogate pair is no character";
    }
    append(kReplacementCharacter);
    return nullptr;
  }

  Problem hex4(unsigned& unit) {
    constexpr Problem kNoHex = "four hexadecimal digits are expected";
    if (left().size() < 6) {
      return kNoHex;
    }
    if (std::from_chars(at_ + 2, at_ + 6, unit, 16).ptr != at_ + 6) {
      return kNoHex;
    }
    at_ += 6;
    return nullptr;
  }

  const char* at_;
  const char* const end_;
  const BadText bad_text_;
  std::string* const out_;
};

}  // namespace

JsonCursor::Problem JsonCursor::number() {
  constexpr Problem kNoDigit = "a digit is expected";
  const auto digits = [this] {
    const char* const first = at_;
    while (!at_end() && is_digit(*at_)) {
      ++at_;
    }
    return at_ != first;
  };
  at_ += *at_ == '-' ? 1 : 0;
  if (!at_end() && *at_ == '0') {
    ++at_;
    if (!at_end() && is_digit(*at_)) {
      return "a number must not begin with 0";
    }
  } else if (!digits()) {
    return kNoDigit;
  }
  if (!at_end() && *at_ == '.') {
    ++at_;
    if (!digits()) {
      return kNoDigit;
    }
  }
  if (!at_end() && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    at_ += !at_end() && (*at_ == '+' || *at_ == '-') ? 1 : 0;
    if (!digits()) {
      return kNoDigit;
    }
  }
  return nullptr;
}

JsonCursor::Problem JsonCursor::rest_of_string(BadText bad_text, std::string* out) {
  OddCharacters characters(at_, end_, bad_text, out);
  const Problem problem = characters.pass();
  at_ = characters.at();
  return problem;
}

bool JsonReader::fail(std::string_view reason) {
  if (reason_.empty()) {
    reason_ = reason;
  }
  return false;
}

std::string JsonReader::place() const {
  const std::string_view before = text_.substr(0, offset());
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return "line " + std::to_string(line) + ", column " + std::to_string(before.size() - line_start + 1);
}

JsonReader::Kind JsonReader::peek() {
  if (failed()) {
    return Kind::nothing;
  }
  const char first = cursor_.peek();
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
      return first == '-' || JsonCursor::is_digit(first) ? Kind::number : Kind::nothing;
  }
}

bool JsonReader::begin(char bracket) {
  if (failed()) {
    return false;
  }
  if (cursor_.peek() != bracket) {
    return fail(bracket == '{' ? "an object is expected" : "an array is expected");
  }
  if (depth_ == max_depth_) {
    return fail("it is nested too deep");
  }
  cursor_.pass();
  ++depth_;
  fresh_ = true;
  return true;
}

bool JsonReader::begin_object() { return begin('{'); }
bool JsonReader::begin_array() { return begin('['); }

bool JsonReader::next(char closing) {
  bool more = false;
  if (failed() || !is_fine(cursor_.next(closing, fresh_, more))) {
    return false;
  }
  fresh_ = false;
  depth_ -= more ? 0 : 1;
  return more;
}

bool JsonReader::next_element() { return next(']'); }

bool JsonReader::next_member(std::string_view& name) {
  if (!next('}')) {
    return false;
  }
  const bool quoted = cursor_.peek() == '"';
  const char* const start = cursor_.at();
  if (!quoted || !cursor_.plain_string(name)) {
    name_.clear();
    if (!is_fine(cursor_.name(bad_text_, &name_))) {
      return false;
    }
    name = name_;
  }
  written_name_ = {start, static_cast<std::size_t>(cursor_.at() - start)};
  return is_fine(cursor_.colon());
}

bool JsonReader::read_string(std::string& out) {
  out.clear();
  if (peek() != Kind::string) {
    return fail("a string is expected");
  }
  return is_fine(cursor_.string(bad_text_, &out));
}

bool JsonReader::read_number(std::string_view& text) {
  if (peek() != Kind::number) {
    return fail("a number is expected");
  }
  const char* const start = cursor_.at();
  if (!is_fine(cursor_.number())) {
    return false;
  }
  text = {start, static_cast<std::size_t>(cursor_.at() - start)};
  return true;
}

bool JsonReader::read_bool(bool& out) {
  if (peek() != Kind::boolean) {
    return fail("true or false is expected");
  }
  out = *cursor_.at() == 't';
  return is_fine(cursor_.word(out ? "true" : "false"));
}

bool JsonReader::read_null() {
  if (peek() != Kind::null) {
    return fail("null is expected");
  }
  return is_fine(cursor_.word("null"));
}

bool JsonReader::skip() {
  const Kind kind = peek();
  switch (kind) {
    case Kind::object:
    case Kind::array:
      begin(kind == Kind::object ? '{' : '[');
      while (next(kind == Kind::object ? '}' : ']')) {
        const bool named =
            kind == Kind::array || (is_fine(cursor_.name(bad_text_, nullptr)) && is_fine(cursor_.colon()));
        if (!named || !skip()) {
          return false;
        }
      }
      return !failed();
    case Kind::string:
      return is_fine(cursor_.string(bad_text_, nullptr));
    case Kind::number:
      return is_fine(cursor_.number());
    case Kind::boolean:
      return is_fine(cursor_.word(*cursor_.at() == 't' ? "true" : "false"));
    case Kind::null:
      return is_fine(cursor_.word("null"));
    case Kind::nothing:
      break;
  }
  return fail(cursor_.at_end() ? JsonCursor::kTooEarly : "a value is expected");
}

bool JsonReader::read_raw(std::string_view& text) {
  peek();  // passes the white space before the value
  const char* const start = cursor_.at();
  if (!skip()) {
    return false;
  }
  text = {start, static_cast<std::size_t>(cursor_.at() - start)};
  return true;
}

bool JsonReader::finish() {
  if (failed()) {
    return false;
  }
  cursor_.peek();
  return cursor_.at_end() || fail("there is more text after the value");
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
