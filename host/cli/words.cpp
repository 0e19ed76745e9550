#include "host/cli/words.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

#include "base/ranges.hpp"
#include "base/text/lower_case.hpp"
#include "base/text/visible.hpp"

namespace sluice::cli {

namespace {

constexpr std::string_view kSpace = " \t\r\n\v\f";

bool is_space(char letter) { return kSpace.find(letter) != std::string_view::npos; }

Error unfinished(std::string_view what, std::size_t position, std::string_view mend) {
  return {ErrorCode::invalid,
          "column " + std::to_string(position + 1) + ": " + std::string(what) + "; " + std::string(mend)};
}

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view line) {
  std::vector<std::string> words;
  bool in_word = false;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const std::size_t start = at;
    const char letter = line[at];
    if (is_space(letter)) {
      in_word = false;
      continue;
    }
    if (!std::exchange(in_word, true)) {
      if (letter == '#') {
        break;
      }
      words.emplace_back();
    }
    std::string& word = words.back();
    if (letter == '\'') {
      at = line.find('\'', start + 1);
      if (at == std::string_view::npos) {
        return unfinished("the quote ' is never closed", start, "close it, or write \\' for a plain one");
      }
      word += line.substr(start + 1, at - start - 1);
    } else if (letter == '"') {
      for (++at; at < line.size() && line[at] != '"'; ++at) {
        const std::string_view two = line.substr(at, 2);
        at += two == "\\\"" || two == "\\\\" ? 1 : 0;
        word += line[at];
      }
      if (at == line.size()) {
        return unfinished("the quote \" is never closed", start, "close it, or write \\\" for a plain one");
      }
    } else if (letter == '\\') {
      if (++at == line.size()) {
        return unfinished("the line ends with a backslash", start, "write \\\\ for one");
      }
      word += line[at];
    } else {
      word += letter;
    }
  }
  return words;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool can_stand_on_line(std::string_view text) { return visible(text) == text; }

TypedCommand parse_input(std::string_view line) {
  std::istringstream words{std::string(line)};
  TypedCommand typed;
  words >> typed.name;
  typed.name = lower_case(typed.name);
  typed.parameters.assign(std::istream_iterator<std::string>(words), {});
  return typed;
}

std::string_view option_name(std::string_view word) {
  return word.substr(0, 2) == "--" ? word.substr(2, word.find('=') - 2) : std::string_view();
}

bool queue_stands_first(const std::vector<Flag>& flags) {
  const Flag* const own = find_where(flags, [](const Flag& flag) { return flag.alone; });
  return own != nullptr && (own->name == "id" || own->name == "key");
}

}  // namespace sluice::cli
