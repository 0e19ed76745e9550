#include "host/cli/words.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "base/text/visible.hpp"

namespace sluice::cli {

namespace {

constexpr std::string_view kSpace = " \t\r\n\v\f";

bool is_space(char letter) { return kSpace.find(letter) != std::string_view::npos; }

Error unfinished(std::string_view what, std::size_t position, std::string_view mend) {
  return {ErrorCode::invalid,
          "column " + std::to_string(position + 1) + ": " + std::string(what) + "; " + std::string(mend)};
}

/// Reads one line from its start to its end.
class Splitter {
 public:
  explicit Splitter(std::string_view line) : line_(line) {}

  Result<std::vector<std::string>> split() {
    std::vector<std::string> words;
    while (skip_space()) {
      std::string word;
      while (position_ < line_.size() && !is_space(line_[position_])) {
        SLUICE_PASS_ON(take_piece(word));
      }
      words.push_back(std::move(word));
    }
    return words;
  }

 private:
  /// False at the end of the line, and where a comment begins.
  bool skip_space() {
    while (position_ < line_.size() && is_space(line_[position_])) {
      ++position_;
    }
    return position_ < line_.size() && line_[position_] != '#';
  }

  Result<void> take_piece(std::string& word) {
    switch (line_[position_]) {
      case '\'':
        return take_single(word);
      case '"':
        return take_double(word);
      case '\\':
        if (position_ + 1 == line_.size()) {
          return unfinished("the line ends with a backslash", position_, "write \\\\ for one");
        }
        word += line_[position_ + 1];
        position_ += 2;
        return {};
      default:
        word += line_[position_++];
        return {};
    }
  }

  Result<void> take_single(std::string& word) {
    const auto end = line_.find('\'', position_ + 1);
    if (end == std::string_view::npos) {
      return unfinished("the quote ' is never closed", position_, "close it, or write \\' for a plain one");
    }
    word += line_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
    return {};
  }

  Result<void> take_double(std::string& word) {
    const std::size_t start = position_++;
    while (position_ < line_.size() && line_[position_] != '"') {
      const bool escapes = line_[position_] == '\\' && position_ + 1 < line_.size() &&
                           (line_[position_ + 1] == '"' || line_[position_ + 1] == '\\');
      position_ += escapes ? 1 : 0;
      word += line_[position_++];
    }
    if (position_ == line_.size()) {
      return unfinished("the quote \" is never closed", start, "close it, or write \\\" for a plain one");
    }
    ++position_;
    return {};
  }

  std::string_view line_;
  std::size_t position_ = 0;
};

bool takes_plain_ids(const Command& command) {
  const Flag* const id = command.flag("id");
  return id != nullptr && id->alone;
}

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view line) { return Splitter(line).split(); }

bool can_stand_on_line(std::string_view text) { return visible(text) == text; }

TypedCommand parse_input(std::string_view line) {
  std::istringstream words{std::string(line)};
  TypedCommand typed;
  words >> typed.name;
  for (char& letter : typed.name) {
    letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
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

Words plain_words(const Command& command, const Words& words) {
  Words plain;
  for (std::size_t index = command.name_words(); index < words.size(); ++index) {
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
