#include "base/text/json_cursor.hpp"

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
    unit = 0;
    for (const char c : left().substr(2, 4)) {
      const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      if (!letter && !JsonCursor::is_digit(c)) {
        return kNoHex;
      }
      unit = unit * 16 + (letter ? (static_cast<unsigned>(c) | 0x20u) - 'a' + 10 : static_cast<unsigned>(c - '0'));
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

JsonCursor::Stop JsonCursor::number_from(const char* at, const char* end) {
  constexpr Problem kNoDigit = "a digit is expected";
  const auto digits = [&at, end] {
    const char* const first = at;
    while (at != end && is_digit(*at)) {
      ++at;
    }
    return at != first;
  };
  at += *at == '-' ? 1 : 0;
  if (at != end && *at == '0') {
    ++at;
    if (at != end && is_digit(*at)) {
      return {at, "a number must not begin with 0"};
    }
  } else if (!digits()) {
    return {at, kNoDigit};
  }
  if (at != end && *at == '.') {
    ++at;
    if (!digits()) {
      return {at, kNoDigit};
    }
  }
  if (at != end && (*at == 'e' || *at == 'E')) {
    ++at;
    at += at != end && (*at == '+' || *at == '-') ? 1 : 0;
    if (!digits()) {
      return {at, kNoDigit};
    }
  }
  return {at, nullptr};
}

JsonCursor::Stop JsonCursor::rest_of_string(const char* at, const char* end, BadText bad_text, std::string* out) {
  OddCharacters characters(at, end, bad_text, out);
  const Problem problem = characters.pass();
  return {characters.at(), problem};
}

}  // namespace sluice
