#include "host/cli/shell/line_words.hpp"

#include <algorithm>

namespace sluice::cli {

using Words = std::vector<std::string>;

namespace {

bool takes_plain_ids(const Command& command) {
  return std::find(command.positional.begin(), command.positional.end(), "id") != command.positional.end();
}

}  // namespace

const Command* command_of(const Words& words) {
  if (words.empty()) {
    return nullptr;
  }
  const Command* command = words.size() > 1 ? find_command(words[0] + " " + words[1]) : nullptr;
  return command != nullptr ? command : find_command(words[0]);
}

const Flag* flag_of(const Command& command, std::string_view name) {
  const auto found = std::find_if(command.flags.begin(), command.flags.end(), [name](const Flag& flag) {
    return flag.name == name || (!flag.alias.empty() && flag.alias == name);
  });
  return found == command.flags.end() ? nullptr : &*found;
}

std::string_view option_name(std::string_view word) {
  return word.substr(0, 2) == "--" ? word.substr(2, word.find('=') - 2) : std::string_view();
}

const std::string* given(const Words& words, std::string_view name) {
  const auto found =
      std::find_if(words.begin(), words.end(), [name](const std::string& word) { return option_name(word) == name; });
  return found == words.end() ? nullptr : &*found;
}

bool gives(const Words& words, const Flag& flag) {
  return given(words, flag.name) != nullptr || (!flag.alias.empty() && given(words, flag.alias) != nullptr);
}

Words plain_ids(const Command& command, const Words& words) {
  Words ids;
  if (!takes_plain_ids(command)) {
    return ids;
  }
  const auto name = static_cast<std::size_t>(std::count(command.name.begin(), command.name.end(), ' ')) + 1;
  for (std::size_t index = name; index < words.size(); ++index) {
    const std::string_view option = option_name(words[index]);
    if (option.empty()) {
      ids.push_back(words[index]);
    } else if (const Flag* flag = flag_of(command, option);
               flag != nullptr && !flag->value.empty() && words[index].find('=') == std::string::npos) {
      ++index;
    }
  }
  return ids;
}

bool names_messages(const Words& before, std::string_view typed) {
  const Command* command = command_of(before);
  if (command == nullptr || !takes_plain_ids(*command) || typed.substr(0, 1) == "-") {
    return false;
  }
  const Flag* flag = flag_of(*command, option_name(before.back()));
  return flag == nullptr || flag->value.empty();
}

}  // namespace sluice::cli
