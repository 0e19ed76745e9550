#include "base/text/percent.hpp"

#include <charconv>
#include <cstddef>

namespace sluice {

namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

/// The byte that the escape at the front stands for; -1: there is none.
int escaped_byte(std::string_view text) {
  if (text.size() < 3 || text[0] != '%') {
    return -1;
  }
  unsigned byte = 0;
  const char* const end = text.data() + 3;
  return std::from_chars(text.data() + 1, end, byte, 16).ptr == end ? static_cast<int>(byte) : -1;
}

}  // namespace

std::string percent_encoded(std::string_view text, std::string_view kept) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c) || kept.find(c) != std::string_view::npos) {
      encoded.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded.push_back('%');
    encoded.push_back(kDigits[byte >> 4U]);
    encoded.push_back(kDigits[byte & 15U]);
  }
  return encoded;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  for (std::size_t escape = text.find('%'); escape != std::string_view::npos; escape = text.find('%', escape + 1)) {
    if (escaped_byte(text.substr(escape)) < 0) {
      return std::nullopt;
    }
  }
  return percent_decoded_loosely(text);
}

std::string percent_decoded_loosely(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  while (!text.empty()) {
    const int byte = escaped_byte(text);
    decoded.push_back(byte < 0 ? text.front() : static_cast<char>(byte));
    text.remove_prefix(byte < 0 ? 1 : 3);
  }
  return decoded;
}

}  // namespace sluice
