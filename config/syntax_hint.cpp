#include "config/syntax_hint.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "config/syntax.hpp"

namespace sluice::config {

namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlank);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

/// The lines of a file, counted from 1.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}

  std::string_view line(std::size_t number) const {
    std::string_view rest = text_;
    for (std::size_t at = 1; at < number && !rest.empty(); ++at) {
      rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
    }
    return rest.substr(0, rest.find('\n'));
  }

 private:
  std::string_view text_;
};

/// "key = value" of a line, where it is one with a plain key.
struct Pair {
  std::string_view key;
  std::string_view value;  ///< without a comment behind it
  std::size_t value_column = 0;
};

std::optional<Pair> pair_of(std::string_view line) {
  const auto equals = line.find('=');
  if (equals == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view key = trimmed(line.substr(0, equals));
  const bool plain = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.';
  });
  const auto begin = line.find_first_not_of(kBlank, equals + 1);
  if (!plain || begin == std::string_view::npos) {
    return std::nullopt;
  }
  const auto comment = std::min(line.find('#', begin), line.size());
  return Pair{key, trimmed(line.substr(begin, comment - begin)), begin + 1};
}

/// What can only be a text: it begins like a word, a path or a number, and is none of TOML's values.
bool is_bare_text(std::string_view value) {
  constexpr std::string_view kOfNumbersAndTimes = "0123456789_.+-:eETZ";
  const bool begins = !value.empty() && (is_letter(value[0]) || is_digit(value[0]) || value[0] == '/' ||
                                         value[0] == '.' || value[0] == '~' || value[0] == '$' || value[0] == '*');
  return begins && value.find_first_of("\"'=[]{}") == std::string_view::npos && value != "true" && value != "false" &&
         value.find_first_not_of(kOfNumbersAndTimes) != std::string_view::npos;
}

std::optional<ConfigError> unquoted(std::string_view line, const Place& at) {
  const auto pair = pair_of(line);
  if (!pair || at.column < pair->value_column || !is_bare_text(pair->value)) {
    return std::nullopt;
  }
  return ConfigError{{at.file, at.line, static_cast<std::uint32_t>(pair->value_column)},
                     "a text stands in quotes: " + std::string(pair->key) + " = \"" + abridged(pair->value) + "\""};
}

bool is_header(std::string_view line) { return trimmed(line).substr(0, 1) == "["; }

/// The line above `at` that has the key in the same table; 0 when it is not to be seen.
std::size_t first_line_of_key(const Lines& lines, std::size_t at, std::string_view key) {
  std::size_t first = 0;
  for (std::size_t number = at - 1; number > 0 && !is_header(lines.line(number)); --number) {
    const auto pair = pair_of(lines.line(number));
    first = pair && pair->key == key ? number : first;
  }
  return first;
}

std::size_t first_line_of_table(const Lines& lines, std::size_t at, std::string_view header) {
  for (std::size_t number = 1; number < at; ++number) {
    if (trimmed(lines.line(number)) == header) {
      return number;
    }
  }
  return 0;
}

std::optional<ConfigError> given_twice(const Lines& lines, const Place& at) {
  const std::string_view line = lines.line(at.line);
  const std::string_view header = trimmed(line);
  const std::size_t column = std::min(line.find_first_not_of(kBlank), line.size()) + 1;
  const auto say = [&](const std::string& what, std::size_t first) -> std::optional<ConfigError> {
    if (first == 0) {
      return std::nullopt;
    }
    return ConfigError{{at.file, at.line, static_cast<std::uint32_t>(column)},
                       what + " is given twice, first in line " + std::to_string(first)};
  };
  if (is_header(line)) {
    return say(one_line(header), first_line_of_table(lines, at.line, header));
  }
  const auto pair = pair_of(line);
  return pair ? say("'" + std::string(pair->key) + "'", first_line_of_key(lines, at.line, pair->key)) : std::nullopt;
}

}  // namespace

std::optional<ConfigError> syntax_hint(std::string_view text, const Place& at, std::string_view complaint) {
  const Lines lines(text);
  if (complaint.find("cannot redefine") != std::string_view::npos) {
    return given_twice(lines, at);
  }
  return unquoted(lines.line(at.line), at);
}

}  // namespace sluice::config
