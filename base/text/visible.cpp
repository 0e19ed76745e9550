#include "base/text/visible.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/guard.hpp"
#include "base/text/hex.hpp"
#include "base/text/json_string.hpp"
#include "base/text/utf8.hpp"

namespace sluice {

namespace {

std::uint8_t byte_at(std::string_view text, std::size_t index) { return static_cast<std::uint8_t>(text[index]); }

/// Characters beyond C1 that show nothing or turn the order of others round: soft hyphen, marks and ends of directions,
/// spaces without width, separators of lines, invisible operators, byte order mark, annotations, tags.
constexpr std::array<std::pair<char32_t, char32_t>, 10> kHidden{{{0xad, 0xad},
                                                                 {0x61c, 0x61c},
                                                                 {0x180e, 0x180e},
                                                                 {0x200b, 0x200b},
                                                                 {0x200e, 0x200f},
                                                                 {0x2028, 0x202e},
                                                                 {0x2060, 0x206f},
                                                                 {0xfeff, 0xfeff},
                                                                 {0xfff9, 0xfffb},
                                                                 {0xe0000, 0xe007f}}};

/// `sequence` is one character of UTF-8.
char32_t code_point(std::string_view sequence) {
  if (sequence.size() == 1) {
    return byte_at(sequence, 0);
  }
  char32_t point = byte_at(sequence, 0) & (0x7fU >> sequence.size());
  for (std::size_t i = 1; i < sequence.size(); ++i) {
    point = point << 6U | (byte_at(sequence, i) & 0x3fU);
  }
  return point;
}

/// C0, DEL, the C1 range, which terminals obey as they obey ESC, and what is hidden.
bool is_escaped(char32_t point) {
  if (point < 0xa0) {
    return point < 0x20 || point == 0x7f || (point > 0x7f && SLUICE_GUARD(terminal_c1));
  }
  return std::any_of(kHidden.begin(), kHidden.end(),
                     [point](const auto& range) { return point >= range.first && point <= range.second; });
}

void append_unit(std::string& out, char32_t unit) {
  out += "\\u";
  for (const unsigned shift : {12U, 8U, 4U, 0U}) {
    out += kHexDigits[unit >> shift & 0xfU];
  }
}

/// As JSON writes it, so that in JSON nothing is changed by it.
void append_escape(std::string& out, char32_t point) {
  if (point < 0x100) {
    append_json_escape(out, static_cast<unsigned char>(point));
  } else if (point < 0x10000) {
    append_unit(out, point);
  } else {
    append_unit(out, 0xd800 + ((point - 0x10000) >> 10U));
    append_unit(out, 0xdc00 + (point & 0x3ffU));
  }
}

void append_raw_byte(std::string& out, std::uint8_t byte) {
  out += "\\x";
  out += kHexDigits[byte >> 4U];
  out += kHexDigits[byte & 0xfU];
}

/// Calls `raw` for a byte that is not UTF-8, `odd` for what is escaped, and `plain` for every other character.
template <typename Raw, typename Odd, typename Plain>
void each_character(std::string_view text, Raw raw, Odd odd, Plain plain) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view sequence = text.substr(0, length == 0 ? 1 : length);
    if (length == 0) {
      raw(byte_at(text, 0));
    } else if (const char32_t point = code_point(sequence); is_escaped(point)) {
      odd(point);
    } else {
      plain(sequence);
    }
    text.remove_prefix(sequence.size());
  }
}

}  // namespace

void append_visible(std::string& out, std::string_view text) {
  each_character(
      text, [&out](std::uint8_t byte) { append_raw_byte(out, byte); },
      [&out](char32_t point) { append_escape(out, point); }, [&out](std::string_view sequence) { out += sequence; });
}

std::string visible(std::string_view text) {
  std::string shown;
  append_visible(shown, text);
  return shown;
}

void append_visible_json(std::string& out, std::string_view text) {
  out += '"';
  each_character(
      text,
      [&out](std::uint8_t byte) {
        out += '\\';
        append_raw_byte(out, byte);
      },
      [&out](char32_t point) { append_escape(out, point); },
      [&out](std::string_view sequence) {
        out += sequence == "\"" || sequence == "\\" ? "\\" : "";
        out += sequence;
      });
  out += '"';
}

}  // namespace sluice
