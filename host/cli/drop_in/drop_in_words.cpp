#include <algorithm>
#include <array>
#include <map>

#include "host/cli/drop_in/drop_in.hpp"
#include "host/cli/completion.hpp"

namespace sluice::cli {

namespace {

using Words = std::vector<std::string>;

// DynamoMQ's spelling of an option, and the one that everything behind this file knows.
struct Spelling {
  std::string_view theirs;
  std::string_view ours;
};
constexpr std::array<Spelling, 3> kSpellings{
    {{"endpoint-url", "endpoint"}, {"index-name", "index"}, {"table-name", "table"}}};

std::string our_name(std::string_view theirs) {
  const auto* const found = std::find_if(kSpellings.begin(), kSpellings.end(),
                                         [theirs](const Spelling& spelling) { return spelling.theirs == theirs; });
  return std::string(found == kSpellings.end() ? theirs : found->ours);
}

// What every command takes. Those without help are ours.
const std::vector<Flag>& common_flags() {
  static const std::vector<Flag> kFlags{
      {.name = "endpoint-url", .value = "string", .help = "address of DynamoDB, in place of AWS's own"},
      {.name = "index-name",
       .value = "string",
       .help = "index of the table [default: dynamo-mq-index-queue_type-sent_at]",
       .alias = "queueing-index-name"},
      {.name = "table-name", .value = "string", .help = "table of the queue [default: dynamo-mq-table]"},
      {.name = "config", .value = "string"},
      {.name = "queue", .value = "string"},
  };
  return kFlags;
}

std::vector<Flag> flags_of(const Command* command) {
  std::vector<Flag> flags = common_flags();
  if (command != nullptr) {
    flags.insert(flags.end(), command->flags.begin(), command->flags.end());
  }
  return flags;
}

/// Any command's flag counts until it is known which command it is.
const Flag* find_flag(const Command* command, const std::string& name) {
  const auto among = [&name](const std::vector<Flag>& flags) -> const Flag* {
    const auto found = std::find_if(flags.begin(), flags.end(), [&name](const Flag& flag) {
      return flag.name == name || (!flag.alias.empty() && flag.alias == name);
    });
    return found == flags.end() ? nullptr : &*found;
  };
  if (const Flag* common = among(common_flags())) {
    return common;
  }
  return command == nullptr ? nullptr : among(command->flags);
}

const Command* find(const std::string& name) {
  const auto found =
      std::find_if(drop_in_commands().begin(), drop_in_commands().end(), [&name](const Command& command) {
        return command.name == name || (!command.alias.empty() && command.alias == name);
      });
  return found == drop_in_commands().end() ? nullptr : &*found;
}

/// Where the command's name stands: the first word that is neither a flag nor the value of one.
std::size_t command_position(const Words& words) {
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--") {
      break;
    }
    if (word.empty() || word.front() != '-') {
      return at;
    }
    const bool takes_next = word.rfind("--", 0) == 0 && word.find('=') == std::string::npos && word != "--help";
    at += takes_next ? 1 : 0;
  }
  return words.size();
}

std::string unknown_command(const std::string& name) {
  std::string text = "unknown command \"" + name + "\" for \"dynamomq\"";
  Words known;
  for (const Command& command : drop_in_commands()) {
    known.emplace_back(command.name);
  }
  if (const auto meant = nearest_word(name, known)) {
    text += "\n\nDid you mean this?\n\t" + *meant + "\n";
  }
  return text;
}

/// Reads flags one after the other; stops at the first that is wrong.
class FlagReader {
 public:
  explicit FlagReader(const Command* command) : command_(command) {}

  /// What is wrong, or nothing.
  std::string read(const Words& words) {
    for (std::size_t at = 0; at < words.size(); ++at) {
      const std::string& word = words[at];
      if (word == "--") {
        break;
      }
      if (word == "-h" || word == "--help") {
        help_ = true;
      } else if (word.rfind("--", 0) == 0) {
        if (std::string error = read_long(words, at); !error.empty()) {
          return error;
        }
      } else if (word.size() > 1 && word.front() == '-') {
        return "unknown shorthand flag: '" + word.substr(1, 1) + "' in " + word;
      }
    }
    return {};
  }

  bool help() const { return help_; }
  std::map<std::string, std::string> take_values() { return std::move(values_); }

 private:
  std::string read_long(const Words& words, std::size_t& at) {
    const std::string& word = words[at];
    const auto equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const Flag* flag = find_flag(command_, name);
    if (flag == nullptr) {
      return "unknown flag: --" + name;
    }
    std::string& value = values_[our_name(flag->name)];
    if (flag->value.empty()) {
      value = "true";
    } else if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (at + 1 < words.size()) {
      value = words[++at];
    } else {
      return "flag needs an argument: --" + name;
    }
    return {};
  }

  const Command* command_;
  std::map<std::string, std::string> values_;
  bool help_ = false;
};

std::string flag_lines(const Command* command) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Flag& flag : flags_of(command)) {
    if (!flag.help.empty()) {
      lines.emplace_back(
          "      --" + std::string(flag.name) + (flag.value.empty() ? "" : " " + std::string(flag.value)), flag.help);
    }
  }
  lines.emplace_back("  -h, --help", "help for " + std::string(command == nullptr ? "dynamomq" : command->name));
  std::sort(lines.begin(), lines.end(), [](const auto& left, const auto& right) {
    return left.first.substr(left.first.find("--")) < right.first.substr(right.first.find("--"));
  });
  std::size_t column = 0;
  for (const auto& [left, right] : lines) {
    column = std::max(column, left.size() + 3);
  }
  std::string text;
  for (const auto& [left, right] : lines) {
    text += left + std::string(column - left.size(), ' ') + right + "\n";
  }
  return text;
}

}  // namespace

DropInWords parse_drop_in(const Words& words) {
  DropInWords parsed;
  const std::size_t position = command_position(words);
  Words rest = words;
  if (position < words.size()) {
    parsed.command = find(words[position]);
    if (parsed.command == nullptr) {
      parsed.error = unknown_command(words[position]);
      parsed.unknown_command = true;
      return parsed;
    }
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(position));
  }
  FlagReader reader(parsed.command);
  parsed.error = reader.read(rest);
  parsed.wants_help = reader.help();
  parsed.arguments = Arguments::of(reader.take_values());
  return parsed;
}

std::string drop_in_usage(const Command* command) {
  std::string text = "Usage:\n  dynamomq " + (command == nullptr ? "" : std::string(command->name) + " ") + "[flags]\n";
  if (command == nullptr) {
    text += "  dynamomq [command]\n\nAvailable Commands:\n";
    std::size_t column = 0;
    for (const Command& listed : drop_in_commands()) {
      column = std::max(column, listed.name.size() + 1);
    }
    for (const Command& listed : drop_in_commands()) {
      text += "  " + std::string(listed.name) + std::string(column - listed.name.size(), ' ') +
              std::string(listed.summary) + "\n";
    }
  }
  text += "\nFlags:\n" + flag_lines(command);
  if (command == nullptr) {
    text += "\nUse \"dynamomq [command] --help\" for more information about a command.\n";
  }
  return text;
}

std::string drop_in_help(const Command* command) {
  const std::string about = command == nullptr
                                ? "Operates message queues in DynamoDB tables: Sluice, in the place of DynamoMQ's own "
                                  "tool. Without a command it is interactive."
                                : std::string(command->summary) + ".";
  return about + "\n\n" + drop_in_usage(command);
}

}  // namespace sluice::cli
