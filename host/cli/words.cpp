#include "host/cli/words.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

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

bool takes_plain_ids(const Command& command) {
  const Flag* const id = command.flag("id");
  return id != nullptr && id->alone;
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

using Words = std::vector<std::string>;

std::string_view option_name(std::string_view word) {
  return word.substr(0, 2) == "--" ? word.substr(2, word.find('=') - 2) : std::string_view();
}

bool gives(const Words& words, std::string_view name) {
  return std::any_of(words.begin(), words.end(), [name](const std::string& word) { return option_name(word) == name; });
}

bool gives(const Words& words, const Flag& flag) {
  return gives(words, flag.name) || (!flag.alias.empty() && gives(words, flag.alias));
}

std::string given_value(const Words& words, std::string_view name) {
  const auto found =
      std::find_if(words.begin(), words.end(), [name](const std::string& word) { return option_name(word) == name; });
  if (found == words.end()) {
    return {};
  }
  if (const auto equals = found->find('='); equals != std::string::npos) {
    return found->substr(equals + 1);
  }
  return found + 1 == words.end() ? std::string() : *(found + 1);
}

const Flag* awaits_value(const Command& command, std::string_view word) {
  const Flag* const flag = word.find('=') == std::string_view::npos ? command.flag(option_name(word)) : nullptr;
  return flag == nullptr || flag->value.empty() ? nullptr : flag;
}

bool queue_stands_first(const std::vector<Flag>& flags) {
  const auto own = std::find_if(flags.begin(), flags.end(), [](const Flag& flag) { return flag.alone; });
  return own != flags.end() && (own->name == "id" || own->name == "key");
}

Words plain_words(const Command& command, const Words& words) {
  return plain_words(command, words, command.name_words());
}

Words plain_words(const Command& command, const Words& words, std::size_t from) {
  Words plain;
  for (std::size_t index = from; index < words.size(); ++index) {
    if (words[index].size() < 2 || words[index].front() != '-') {
      plain.push_back(words[index]);
    } else if (awaits_value(command, words[index]) != nullptr) {
      ++index;
    }
  }
  return plain;
}

Words plain_ids(const Command& command, const Words& words) {
  return takes_plain_ids(command) ? plain_words(command, words) : Words();
}

bool names_messages(const Words& before, std::string_view typed) {
  const Command* command = find_command(commands(), before);
  return command != nullptr && takes_plain_ids(*command) && !typed.starts_with('-') &&
         awaits_value(*command, before.back()) == nullptr;
}

}  // namespace sluice::cli
