#include "publishing/text.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace publishing {

namespace {

/// The length of the character of UTF-8 at the start of `text`; 0 when there is none.
std::size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0x80                     ? 1
                             : first >= 0xC2 && first <= 0xDF ? 2
                             : first >= 0xE0 && first <= 0xEF ? 3
                             : first >= 0xF0 && first <= 0xF4 ? 4
                                                              : 0;
  if (length == 0 || length > text.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // No character has two spellings, none is half a surrogate pair, none lies beyond the last.
    const unsigned least = i == 1 && first == 0xE0 ? 0xA0 : i == 1 && first == 0xF0 ? 0x90 : 0x80;
    const unsigned most = i == 1 && first == 0xED ? 0x9F : i == 1 && first == 0xF4 ? 0x8F : 0xBF;
    if (byte < least || byte > most) {
      return 0;
    }
  }
  return length;
}

}  // namespace

bool has_control(std::string_view text) { return std::any_of(text.begin(), text.end(), &is_control); }

std::string one_line(std::string_view text, std::size_t limit) {
  std::string line(text.substr(0, limit));
  std::replace_if(line.begin(), line.end(), &is_control, ' ');
  return text.size() > limit ? line + "..." : line;
}

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t at = 0;
  std::size_t seen = 0;
  std::size_t star = std::string_view::npos;  // the last star, and how much of the text it has taken
  std::size_t taken = 0;
  while (seen < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      taken = seen;
    } else if (at < pattern.size() && pattern[at] == text[seen]) {
      ++at;
      ++seen;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      seen = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

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

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("the cryptography library of this machine has no SHA-256");
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4U];
    text += kDigits[digest[i] & 15U];
  }
  return text;
}

}  // namespace publishing
