#include "base/text/utf8.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace sluice {

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) {
    return 0;
  }
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&text](std::size_t i) { return i < text.size() && continues_utf8(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xC2 && first <= 0xDF) {
    return continues(1) ? 2 : 0;
  }
  if (first >= 0xE0 && first <= 0xEF && continues(1) && continues(2)) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  if (first >= 0xF0 && first <= 0xF4 && continues(1) && continues(2) && continues(3)) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool beyond = first == 0xF4 && byte(1) >= 0x90;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

std::size_t utf8_run(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    std::uint64_t word = 0;
    if (rest.size() >= sizeof(word)) {  // eight bytes of ASCII a step, as nearly all text is
      std::memcpy(&word, rest.data(), sizeof(word));
      if ((word & 0x8080808080808080U) == 0) {
        rest.remove_prefix(sizeof(word));
        continue;
      }
    }
    const std::size_t length = utf8_length(rest);
    if (length == 0) {
      break;
    }
    rest.remove_prefix(length);
  }
  return text.size() - rest.size();
}

std::size_t count_utf8(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !continues_utf8(byte); }));
}

void append_utf8(std::string& out, unsigned code_point) {
  const auto tail = [&out, code_point](unsigned shift) {
    out.push_back(static_cast<char>(0x80 | ((code_point >> shift) & 0x3F)));
  };
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (code_point >> 6)));
    tail(0);
  } else if (code_point < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (code_point >> 12)));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | (code_point >> 18)));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string_view cut_utf8(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) {
    return text;
  }
  // A character has at most three continuing bytes; more of them are no UTF-8 and may be cut anywhere.
  std::size_t end = limit;
  while (end > 0 && limit - end < 3 && continues_utf8(text[end])) {
    --end;
  }
  return text.substr(0, continues_utf8(text[end]) ? limit : end);
}

std::string clean_utf8(std::string_view text, std::size_t limit, std::string_view replacement) {
  std::string clean;
  clean.reserve(std::min(text.size(), limit));
  while (!text.empty()) {
    const std::size_t size = utf8_length(text);
    const std::string_view character = size == 0 ? replacement : text.substr(0, size);
    if (clean.size() + character.size() > limit) {
      break;
    }
    clean += character;
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return clean;
}

}  // namespace sluice
