#include "host/stores/dynamomq/utf8.hpp"

namespace sluice::queue::dynamomq {
namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// Length of the character at the start of `text`; 0 when there is no well-formed one.
std::size_t character_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) {
    return 1;
  }
  std::size_t length = 0;
  unsigned char low = 0x80;  // bounds of the second byte, which rule out overlong forms and surrogates
  unsigned char high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    low = lead == 0xE0 ? 0xA0 : low;
    high = lead == 0xED ? 0x9F : high;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    low = lead == 0xF0 ? 0x90 : low;
    high = lead == 0xF4 ? 0x8F : high;
  }
  if (length == 0 || text.size() < length) {
    return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  if (second < low || second > high) {
    return 0;
  }
  for (std::size_t i = 2; i < length; ++i) {
    if (!is_continuation(text[i])) {
      return 0;
    }
  }
  return length;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

std::string clip_utf8(std::string_view text, std::size_t limit) {
  std::string clipped;
  while (!text.empty() && clipped.size() < limit) {
    const std::size_t length = character_length(text);
    if (length > limit - clipped.size()) {
      break;
    }
    if (length == 0) {
      clipped += '?';
      text.remove_prefix(1);
      continue;
    }
    clipped += text.substr(0, length);
    text.remove_prefix(length);
  }
  return clipped;
}

}  // namespace sluice::queue::dynamomq
