#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::detail {

/// One member of an item in DynamoDB JSON. A value.
struct ItemMember {
  std::string name;
  /// What tells two keys apart: type and value of a string, a number or a binary, with numbers in one spelling. Empty
  /// for other types, which no key has.
  std::string key{};
};

/// 10, 1e1 and 10.0 in one spelling: digits and the power of ten. What is no number stays as it is.
inline std::string plain_number(std::string_view text) {
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  rest.remove_prefix(negative || rest.starts_with('+') ? 1 : 0);
  const std::size_t e = std::min(rest.find_first_of("eE"), rest.size());
  const std::string_view mantissa = rest.substr(0, e);
  const std::string_view exponent = rest.substr(std::min(e + 1, rest.size()));
  const bool down = exponent.starts_with('-');
  long shift = 0;
  for (const char c : exponent.substr(down || exponent.starts_with('+') ? 1 : 0)) {
    if (c < '0' || c > '9' || shift > 1'000'000) {
      return std::string(text);
    }
    shift = shift * 10 + (c - '0');
  }
  long power = down ? -shift : shift;
  std::string digits;
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  for (std::size_t i = 0; i < mantissa.size(); ++i) {
    const char c = mantissa[i];
    if (c >= '0' && c <= '9') {
      digits += c;
      power -= i > point ? 1 : 0;
    } else if (i != point) {
      return std::string(text);
    }
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  while (digits.ends_with('0')) {
    digits.pop_back();
    ++power;
  }
  return digits.empty() ? "0" : (negative ? "-" : "") + digits + "e" + std::to_string(power);
}

/// Reads an item, or the values of expressions: {"id": {"S": "a"}, "total": {"N": "1"}}. Judges what DynamoDB JSON is,
/// not what DynamoDB takes.
class ItemReader {
 public:
  explicit ItemReader(std::string_view text) : text_(text) {}

  /// What is wrong with the text; empty: nothing, and `members` are its members in their order.
  std::string read(std::vector<ItemMember>& members) {
    members.clear();
    skip_space();
    if (!object([&](const std::string& name) {
          const bool twice = std::any_of(members.begin(), members.end(), [&](const auto& m) { return m.name == name; });
          if (twice) {
            return wrong("\"" + name + "\" stands there twice");
          }
          members.push_back({name});
          bytes_ += name.size();
          return value(members.back().key, 0);
        })) {
      return why();
    }
    skip_space();
    return at_ == text_.size() ? std::string() : "something follows its end";
  }
  /// What DynamoDB bills it as at least, once it has been read.
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr int kDeepest = 32;  // DynamoDB's limit

  bool wrong(std::string what) {
    if (why_.empty()) {
      why_ = std::move(what);
    }
    return false;
  }
  std::string why() const {
    return why_.empty() ? "it is not JSON from byte " + std::to_string(std::min(at_, text_.size()) + 1) + " on" : why_;
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char wanted) {
    if (peek() != wanted || at_ >= text_.size()) {
      return false;
    }
    ++at_;
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
      ++at_;
    }
  }

  template <typename Each>
  bool object(Each each) {
    return sequence('{', '}', [&] {
      std::string name;
      if (!string(name)) {
        return false;
      }
      skip_space();
      if (!take(':')) {
        return false;
      }
      skip_space();
      return each(name);
    });
  }
  template <typename Each>
  bool sequence(char open, char close, Each each) {
    if (!take(open)) {
      return false;
    }
    skip_space();
    if (take(close)) {
      return true;
    }
    while (true) {
      skip_space();
      if (!each()) {
        return false;
      }
      skip_space();
      if (take(close)) {
        return true;
      }
      if (!take(',')) {
        return false;
      }
    }
  }

  /// {"S": "a"} and its like.
  bool value(std::string& key, int depth) {
    if (depth > kDeepest) {
      return wrong("it is nested more than 32 deep");
    }
    std::size_t types = 0;
    const bool read = object([&](const std::string& type) {
      ++types;
      return typed(type, key, depth);
    });
    return read && (types == 1 || wrong("a value is written as {\"S\": \"text\"}, with exactly one type"));
  }
  bool typed(const std::string& type, std::string& key, int depth) {
    std::string text;
    if (type == "S" || type == "N" || type == "B") {
      if (!string(text)) {
        return wrong("the value of {\"" + type + "\": ...} is written as a string");
      }
      key = type + ":" + (type == "N" ? plain_number(text) : text);
      count(type.front(), text);
      return true;
    }
    if (type == "SS" || type == "NS" || type == "BS") {
      return sequence('[', ']', [&] {
        const bool read = string(text);
        count(type.front(), text);
        return read;
      });
    }
    if (type == "L" || type == "M") {
      bytes_ += 3;
      const auto element = [&](const std::string& name) {
        bytes_ += 1 + name.size();
        return value(text, depth + 1);
      };
      return type == "M" ? object(element) : sequence('[', ']', [&] { return element({}); });
    }
    if (type == "BOOL" || type == "NULL") {
      ++bytes_;
      return word("true") || word("false") || wrong("the value of {\"" + type + "\": ...} is true or false");
    }
    return wrong("\"" + type + "\" is no type of DynamoDB's: S, N, B, BOOL, NULL, L, M, SS, NS or BS");
  }
  /// A number takes a byte at least, and four characters of base64 are three bytes.
  void count(char type, const std::string& text) {
    if (type == 'N') {
      bytes_ += 1;
    } else if (type == 'B') {
      bytes_ += (text.size() - static_cast<std::size_t>(std::count(text.begin(), text.end(), '='))) * 3 / 4;
    } else {
      bytes_ += text.size();
    }
  }
  bool word(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) {
      return false;
    }
    at_ += wanted.size();
    return true;
  }

  bool string(std::string& into) {
    into.clear();
    if (!take('"')) {
      return false;
    }
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') {
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20) {
        return false;
      }
      if (c != '\\') {
        into += c;
      } else if (!escape(into)) {
        return false;
      }
    }
    return false;
  }
  bool escape(std::string& into) {
    const std::string_view plain = "\"\\/bfnrt";
    const std::size_t found = plain.find(peek());
    if (at_ < text_.size() && found != std::string_view::npos) {
      into += "\"\\/\b\f\n\r\t"[found];
      ++at_;
      return true;
    }
    unsigned int unit = 0;
    if (!take('u') || !hex(unit)) {
      return false;
    }
    if (unit >= 0xD800 && unit < 0xDC00) {
      unsigned int low = 0;
      if (!take('\\') || !take('u') || !hex(low) || low < 0xDC00 || low > 0xDFFF) {
        return false;
      }
      unit = 0x10000 + ((unit - 0xD800) << 10U) + (low - 0xDC00);
    } else if (unit >= 0xDC00 && unit < 0xE000) {
      return false;
    }
    append_utf8(unit, into);
    return true;
  }
  bool hex(unsigned int& unit) {
    for (int i = 0; i < 4; ++i) {
      const char c = peek();
      const std::size_t digit = std::string_view("0123456789abcdef").find(c >= 'A' && c <= 'F' ? char(c + 32) : c);
      if (at_ >= text_.size() || digit == std::string_view::npos) {
        return false;
      }
      unit = unit * 16 + static_cast<unsigned int>(digit);
      ++at_;
    }
    return true;
  }
  static void append_utf8(unsigned int code, std::string& into) {
    const auto tail = [&](unsigned int shift) { into += static_cast<char>(0x80U | ((code >> shift) & 0x3FU)); };
    if (code < 0x80) {
      into += static_cast<char>(code);
    } else if (code < 0x800) {
      into += static_cast<char>(0xC0U | (code >> 6U));
      tail(0);
    } else if (code < 0x10000) {
      into += static_cast<char>(0xE0U | (code >> 12U));
      tail(6);
      tail(0);
    } else {
      into += static_cast<char>(0xF0U | (code >> 18U));
      tail(12);
      tail(6);
      tail(0);
    }
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::size_t bytes_ = 0;
  std::string why_;
};

}  // namespace sluice::detail
