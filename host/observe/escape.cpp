#include "host/observe/escape.hpp"

#include <cstdint>

#include "base/guard.hpp"
#include "base/text/json_string.hpp"
#include "base/text/utf8.hpp"

namespace sluice::observe {

namespace {

constexpr std::string_view kHex = "0123456789abcdef";

std::uint8_t byte_at(std::string_view text, std::size_t index) { return static_cast<std::uint8_t>(text[index]); }

/// C0, DEL, and the C1 range, which terminals obey as they obey ESC.
bool is_control(std::string_view sequence) {
  const std::uint8_t first = byte_at(sequence, 0);
  if (sequence.size() == 1) {
    return first < 0x20 || first == 0x7f;
  }
  return sequence.size() == 2 && first == 0xc2 && byte_at(sequence, 1) < 0xa0 && SLUICE_GUARD(terminal_c1);
}

void append_control(std::string& out, std::string_view sequence) {
  sluice::append_json_escape(out, byte_at(sequence, sequence.size() - 1));
}

void append_raw_byte(std::string& out, std::uint8_t byte) {
  out += "\\x";
  out += kHex[byte >> 4U];
  out += kHex[byte & 0xfU];
}

}  // namespace

void append_visible(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      append_raw_byte(out, byte_at(text, 0));
      text.remove_prefix(1);
      continue;
    }
    if (const auto sequence = text.substr(0, length); is_control(sequence)) {
      append_control(out, sequence);
    } else {
      out += sequence;
    }
    text.remove_prefix(length);
  }
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += '\\';
      append_raw_byte(out, byte_at(text, 0));
      text.remove_prefix(1);
      continue;
    }
    const auto sequence = text.substr(0, length);
    if (is_control(sequence)) {
      append_control(out, sequence);
    } else {
      if (sequence == "\"" || sequence == "\\") {
        out += '\\';
      }
      out += sequence;
    }
    text.remove_prefix(length);
  }
  out += '"';
}

}  // namespace sluice::observe
