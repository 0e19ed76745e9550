#include "host/observe/escape.hpp"

#include <cstdint>

namespace sluice::observe {

namespace {

constexpr std::string_view kHex = "0123456789abcdef";

std::uint8_t byte_at(std::string_view text, std::size_t index) { return static_cast<std::uint8_t>(text[index]); }

bool is_continuation(std::uint8_t byte) { return (byte & 0xc0U) == 0x80U; }

/// The range that the second byte must be in; it is what excludes overlong forms, surrogates and values too large.
bool second_byte_fits(std::uint8_t first, std::uint8_t second) {
  switch (first) {
    case 0xe0:
      return second >= 0xa0 && second <= 0xbf;
    case 0xed:
      return second >= 0x80 && second <= 0x9f;
    case 0xf0:
      return second >= 0x90 && second <= 0xbf;
    case 0xf4:
      return second >= 0x80 && second <= 0x8f;
    default:
      return is_continuation(second);
  }
}

/// C0, DEL, and the C1 range, which terminals obey as they obey ESC.
bool is_control(std::string_view sequence) {
  const std::uint8_t first = byte_at(sequence, 0);
  if (sequence.size() == 1) {
    return first < 0x20 || first == 0x7f;
  }
  return sequence.size() == 2 && first == 0xc2 && byte_at(sequence, 1) < 0xa0;
}

void append_control(std::string& out, std::string_view sequence) {
  const std::uint8_t code = byte_at(sequence, sequence.size() - 1);
  switch (code) {
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
      out += "\\u00";
      out += kHex[code >> 4U];
      out += kHex[code & 0xfU];
  }
}

void append_raw_byte(std::string& out, std::uint8_t byte) {
  out += "\\x";
  out += kHex[byte >> 4U];
  out += kHex[byte & 0xfU];
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) {
    return 0;
  }
  const std::uint8_t first = byte_at(text, 0);
  if (first < 0x80) {
    return 1;
  }
  const std::size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                             : first >= 0xe0 && first <= 0xef ? 3
                             : first >= 0xf0 && first <= 0xf4 ? 4
                                                              : 0;
  if (length == 0 || text.size() < length || !second_byte_fits(first, byte_at(text, 1))) {
    return 0;
  }
  for (std::size_t index = 2; index < length; ++index) {
    if (!is_continuation(byte_at(text, index))) {
      return 0;
    }
  }
  return length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

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
