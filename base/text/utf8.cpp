#include "base/text/utf8.hpp"

#include <algorithm>
#include <boost/locale/utf.hpp>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace sluice {

namespace {

using Utf8 = boost::locale::utf::utf_traits<char>;

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const char* at = text.data();
  const bool good = boost::locale::utf::is_valid_codepoint(Utf8::decode(at, text.data() + text.size()));
  return good ? static_cast<std::size_t>(at - text.data()) : 0;
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

void append_utf8(std::string& out, unsigned code_point) { Utf8::encode(code_point, std::back_inserter(out)); }

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
