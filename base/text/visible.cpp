#include "base/text/visible.hpp"

#include <algorithm>
#include <array>
#include <boost/locale/utf.hpp>
#include <utility>

#include "base/guard.hpp"
#include "base/text/hex.hpp"
#include "base/text/json_string.hpp"

namespace sluice {

namespace {

namespace utf = boost::locale::utf;

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

/// C0, DEL, the C1 range, which terminals obey as they obey ESC, and what is hidden.
bool is_escaped(char32_t point) {
  if (point < 0xa0) {
    return point < 0x20 || point == 0x7f || (point > 0x7f && SLUICE_GUARD(terminal_c1));
  }
  return std::any_of(kHidden.begin(), kHidden.end(),
                     [point](const auto& range) { return point >= range.first && point <= range.second; });
}

void append_unit(std::string& out, char32_t unit) { out += "\\u" + hex_digits(unit, 4); }

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

void append(std::string& out, std::string_view text, bool in_json) {
  while (!text.empty()) {
    const char* at = text.data();
    const char32_t point = utf::utf_traits<char>::decode(at, text.data() + text.size());
    const bool good = utf::is_valid_codepoint(point);
    const std::string_view sequence = text.substr(0, good ? static_cast<std::size_t>(at - text.data()) : 1);
    if (!good) {
      out += (in_json ? "\\\\x" : "\\x") + hex_digits(static_cast<unsigned char>(text[0]), 2);
    } else if (is_escaped(point)) {
      append_escape(out, point);
    } else {
      out += in_json && (sequence == "\"" || sequence == "\\") ? "\\" : "";
      out += sequence;
    }
    text.remove_prefix(sequence.size());
  }
}

}  // namespace

void append_visible(std::string& out, std::string_view text) { append(out, text, false); }

std::string visible(std::string_view text) {
  std::string shown;
  append_visible(shown, text);
  return shown;
}

void append_visible_json(std::string& out, std::string_view text) {
  out += '"';
  append(out, text, true);
  out += '"';
}

}  // namespace sluice
