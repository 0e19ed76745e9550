#include "config/text_check.hpp"

#include <algorithm>
#include <string_view>

#include "config/syntax.hpp"

namespace sluice::config {

namespace {

// toml++ limits the depth of tables and arrays, but not of dotted keys; the length of a line does.
constexpr std::size_t kMaxLine = 16 * 1024;

Place place_of(std::string_view text, std::size_t offset, const std::string& file) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const auto characters = std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_start), before.end(),
                                        [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; });
  return {file, static_cast<std::uint32_t>(lines + 1), static_cast<std::uint32_t>(characters + 1)};
}

std::optional<ConfigError> check_lines(const std::string& text, const std::string& file) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end - begin > kMaxLine) {
      return ConfigError{place_of(text, begin, file), "the line is longer than " + std::to_string(kMaxLine) + " bytes"};
    }
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ConfigError> check_text(const std::string& text, const std::string& file) {
  if (text.rfind("\xff\xfe", 0) == 0 || text.rfind("\xfe\xff", 0) == 0) {
    return ConfigError{{file}, "the file is UTF-16; save it as UTF-8"};
  }
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
    return ConfigError{place_of(text, zero, file), "a zero byte: this is not a text file"};
  }
  if (const std::size_t bad = find_invalid_utf8(text); bad != std::string::npos) {
    return ConfigError{place_of(text, bad, file), "bytes that are not UTF-8; save the file as UTF-8"};
  }
  return check_lines(text, file);
}

}  // namespace sluice::config
