#include "host/plugin/text.hpp"

#include <algorithm>
#include <cstdint>

namespace sluice::plugin {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// The size of the well-formed character that `text` begins with; 0 when it begins with none.
std::size_t character_size(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) {
    return 1;
  }
  const std::size_t size = first >= 0xC2 && first < 0xE0   ? 2
                           : first >= 0xE0 && first < 0xF0 ? 3
                           : first >= 0xF0 && first < 0xF5 ? 4
                                                           : 0;
  if (size == 0 || text.size() < size) {
    return 0;
  }
  if (!std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(size), is_continuation)) {
    return 0;
  }
  // Overlong forms, surrogates and what lies beyond U+10FFFF show in the second byte.
  const auto second = static_cast<unsigned char>(text[1]);
  const bool bad = (first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
                   (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
  return bad ? 0 : size;
}

}  // namespace

std::string_view cut_text(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) {
    return text;
  }
  // A character has at most three continuation bytes; more of them are no UTF-8 and may be cut anywhere.
  std::size_t end = limit;
  while (end > 0 && limit - end < 3 && is_continuation(text[end])) {
    --end;
  }
  return text.substr(0, is_continuation(text[end]) ? limit : end);
}

std::string clean_text(std::string_view text, std::size_t limit) {
  std::string clean;
  clean.reserve(std::min(text.size(), limit));
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const std::string_view character = size == 0 ? kReplacement : text.substr(0, size);
    if (clean.size() + character.size() > limit) {
      break;
    }
    clean += character;
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return clean;
}

}  // namespace sluice::plugin
