#include "host/cli/convert/toml_text.hpp"

#include <array>
#include <charconv>

namespace sluice::cli::convert {

namespace {

std::string quoted(std::string_view value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\t') {
      text += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      text += "\\u00";
      text += kDigits[byte >> 4U];
      text += kDigits[byte & 15U];
    } else {
      text += c;
    }
  }
  return text + "\"";
}

}  // namespace

void TomlText::comment(std::string_view line) { text_ += "# " + std::string(line) + "\n"; }

void TomlText::table(std::string_view name) { text_ += (text_.empty() ? "[" : "\n[") + std::string(name) + "]\n"; }

void TomlText::line(std::string_view key, std::string_view value) {
  text_ += key;
  text_ += " = ";
  text_ += value;
  text_ += '\n';
}

void TomlText::string(std::string_view key, std::string_view value) { line(key, quoted(value)); }

void TomlText::number(std::string_view key, std::int64_t value) { line(key, std::to_string(value)); }

void TomlText::fraction(std::string_view key, double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed).ptr;
  std::string text(digits.data(), end);
  line(key, text.find('.') == std::string::npos ? text + ".0" : text);
}

void TomlText::flag(std::string_view key, bool value) { line(key, value ? "true" : "false"); }

void TomlText::duration(std::string_view key, config::Duration value) {
  line(key, quoted(config::format_duration(value)));
}

void TomlText::strings(std::string_view key, const std::vector<Text>& values) {
  std::string text = "[";
  for (const Text& value : values) {
    text += (text.size() == 1 ? "" : ", ") + quoted(value.text);
  }
  line(key, text + "]");
}

}  // namespace sluice::cli::convert
