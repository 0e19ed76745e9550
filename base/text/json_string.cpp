#include "base/text/json_string.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/text/hex.hpp"
#include "base/text/utf8.hpp"

namespace sluice {

namespace {

constexpr std::uint64_t kOnes = 0x0101010101010101u;
constexpr std::uint64_t kHighBits = 0x8080808080808080u;

// Which of the eight bytes are below `limit` (at most 128): their high bits. Borrows may mark a byte above a true hit
// too, which does not matter, as only "any at all" and the lowest one are asked for.
constexpr std::uint64_t below(std::uint64_t word, unsigned limit) { return (word - kOnes * limit) & ~word & kHighBits; }

bool is_plain(unsigned char byte) { return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\'; }

}  // namespace

void append_json_escape(std::string& out, unsigned char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u" + hex_digits(c, 4);
  }
}

std::size_t plain_run(std::string_view text) {
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, 8);
    const std::uint64_t quote = below(word ^ (kOnes * '"'), 1);
    const std::uint64_t backslash = below(word ^ (kOnes * '\\'), 1);
    if (const std::uint64_t hits = (word & kHighBits) | below(word, 0x20) | quote | backslash; hits != 0) {
      if constexpr (std::endian::native == std::endian::little) {
        return i + static_cast<std::size_t>(std::countr_zero(hits)) / 8;
      }
      break;
    }
  }
  while (i < text.size() && is_plain(static_cast<unsigned char>(text[i]))) {
    ++i;
  }
  return i;
}

void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  while (true) {
    const std::size_t run = plain_run(text);
    out += text.substr(0, run);
    text.remove_prefix(run);
    if (text.empty()) {
      break;
    }
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += kReplacementCharacter;
    } else if (length == 1) {
      append_json_escape(out, static_cast<unsigned char>(text.front()));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out.push_back('"');
}

std::string json_quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace sluice
