#include "host/cli/suggestions.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "host/cli/filters_help.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

using Words = std::vector<std::string>;

bool begins_with(std::string_view text, std::string_view beginning) {
  return text.substr(0, beginning.size()) == beginning;
}

/// Where the words stand: bash gives "--output=json" as three.
Words joined_at_equals(const Words& words) {
  Words joined;
  bool joins = false;
  for (const std::string& word : words) {
    const bool is_equals = word == "=" && !joined.empty();
    if (is_equals || joins) {
      joined.back() += is_equals ? std::string() : word;
    } else {
      joined.push_back(word);
    }
    if (is_equals) {
      joined.emplace_back();
    }
    joins = is_equals;
  }
  return joined;
}

const Command* command_of(const std::vector<Command>& commands, const Words& words) {
  if (words.empty()) {
    return nullptr;
  }
  const std::string both = words.size() > 1 ? words[0] + " " + words[1] : words[0];
  for (const std::string& name : {both, words[0]}) {
    const auto found = std::find_if(commands.begin(), commands.end(), [&name](const Command& command) {
      return command.name == name || (!command.alias.empty() && command.alias == name);
    });
    if (found != commands.end()) {
      return &*found;
    }
  }
  return nullptr;
}

const Flag* flag_of(const Command& command, const std::string& word) {
  const auto found = std::find_if(command.flags.begin(), command.flags.end(), [&word](const Flag& flag) {
    return word == "--" + std::string(flag.name) || (!flag.alias.empty() && word == "--" + std::string(flag.alias));
  });
  return found == command.flags.end() ? nullptr : &*found;
}

void add_if_begun(Suggestions& found, std::string text, std::string_view meaning, std::string_view typed) {
  if (begins_with(text, typed)) {
    found.words.push_back({std::move(text), std::string(meaning)});
  }
}

/// The first words of names, or the second ones of those whose first is `family`.
/// What the commands of a family do: "create, check".
std::string members_of(const std::vector<Command>& commands, const std::string& family) {
  std::string listed;
  for (const Command& command : commands) {
    if (begins_with(command.name, family + " ")) {
      listed += (listed.empty() ? "" : ", ") + std::string(command.name.substr(family.size() + 1));
    }
  }
  return listed;
}

Suggestions suggest_command(const std::vector<Command>& commands, const std::string& family, const std::string& typed) {
  Suggestions found;
  std::set<std::string> families;
  for (const Command& command : commands) {
    const auto blank = command.name.find(' ');
    const std::string first(command.name.substr(0, blank));
    if (!family.empty()) {
      if (blank != std::string_view::npos && first == family) {
        add_if_begun(found, std::string(command.name.substr(blank + 1)), command.summary, typed);
      }
    } else if (blank == std::string_view::npos) {
      add_if_begun(found, first, command.summary, typed);
      if (!command.alias.empty() && !typed.empty() && !begins_with(first, typed)) {
        add_if_begun(found, std::string(command.alias), command.summary, typed);
      }
    } else if (families.insert(first).second) {
      add_if_begun(found, first, members_of(commands, first), typed);
    }
  }
  if (family.empty()) {
    add_if_begun(found, "help", "Explain a command", typed);
  }
  return found;
}

OrExit<config::HostConfig> host_of(const Words& words) {
  std::map<std::string, std::string> named;
  const auto config = std::find(words.begin(), words.end(), "--config");
  if (config != words.end() && config + 1 != words.end()) {
    named["config"] = *(config + 1);
  }
  return load_host_file(Arguments::of(named));
}

/// What an option of this kind may name, as the host file and its jobs know it.
Words known_names(std::string_view kind, const Words& words) {
  Words names;
  const bool queues = kind.find("QUEUE") != std::string_view::npos;
  const bool jobs = kind.find("JOB") != std::string_view::npos;
  const auto host = queues || jobs ? host_of(words) : OrExit<config::HostConfig>(Exit::ok());
  if (host.has_error()) {
    return names;
  }
  if (queues) {
    names = known_queues(*host);
  }
  if (jobs) {
    for (const config::JobConfig& job : config::load_job_files(*host, config::process_environment()).jobs) {
      if (std::find(names.begin(), names.end(), job.name) == names.end()) {
        names.push_back(job.name);
      }
    }
  }
  return names;
}

Suggestions suggest_value(const Flag& flag, const Words& words, const std::string& typed) {
  Suggestions found;
  if (flag.value == "FILE") {
    found.files = true;
  } else if (flag.value == "QUEUE" || flag.value == "JOB" || flag.value == "QUEUE-OR-JOB") {
    for (std::string& name : known_names(flag.value, words)) {
      add_if_begun(found, std::move(name), {}, typed);
    }
  } else if (flag.value.find('|') != std::string_view::npos) {
    for (std::string_view rest = flag.value; !rest.empty();) {
      const auto end = std::min(rest.find('|'), rest.size());
      add_if_begun(found, std::string(rest.substr(0, end)), {}, typed);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return found;
}

/// The words as they stand behind "--name=". A file's name is left to the shell, which does not look behind the sign.
Suggestions with_beginning(Suggestions found, const std::string& beginning) {
  for (Suggestions::Word& word : found.words) {
    word.text.insert(0, beginning);
  }
  return found;
}

/// The option that a word without one stands for at this place; null when none does. Words before it that belong to no
/// option are counted against those that the command takes.
const Flag* operand_at(const Command& command, const Words& before) {
  const auto name_words = static_cast<std::size_t>(1 + std::count(command.name.begin(), command.name.end(), ' '));
  std::size_t alone = 0;
  for (std::size_t i = name_words; i < before.size(); ++i) {
    const Flag* flag = flag_of(command, before[i]);
    if (flag != nullptr && !flag->value.empty()) {
      ++i;
    } else if (!begins_with(before[i], "-")) {
      ++alone;
    }
  }
  for (const std::string_view name : command.positional) {
    const std::string option = "--" + std::string(name);
    const Flag* flag = flag_of(command, option);
    if (flag->repeated || (std::find(before.begin(), before.end(), option) == before.end() && alone-- == 0)) {
      return flag;
    }
  }
  return nullptr;
}

Suggestions suggest_flag(const Command& command, const Words& words, const std::string& typed) {
  Suggestions found;
  for (const Flag& flag : command.flags) {
    const std::string text = "--" + std::string(flag.name);
    const bool given = std::find(words.begin(), words.end() - 1, text) != words.end() - 1;
    if (!given || flag.repeated) {
      add_if_begun(found, text, flag.help, typed);
    }
  }
  add_if_begun(found, "--help", "show its help", typed);
  return found;
}

}  // namespace

std::string Suggestions::lines() const {
  std::string text;
  for (const Word& word : words) {
    text += word.text + (word.meaning.empty() ? "" : "\t" + word.meaning) + "\n";
  }
  return text + (files ? ":files\n" : "");
}

std::optional<std::string> nearest_word(const std::string& wrong, const std::vector<std::string>& known) {
  constexpr std::size_t kShortest = 2;
  if (auto near = config::nearest(wrong, known)) {
    return near;
  }
  const auto begun = std::find_if(known.begin(), known.end(), [&wrong](const std::string& word) {
    return std::min(word.size(), wrong.size()) >= kShortest && (begins_with(word, wrong) || begins_with(wrong, word));
  });
  return begun == known.end() ? std::nullopt : std::optional(*begun);
}

Suggestions suggest(const std::vector<Command>& commands, const Words& given) {
  Words words = joined_at_equals(given);
  if (words.empty()) {
    words.emplace_back();
  }
  const std::string typed = words.back();
  Words before(words.begin(), words.end() - 1);
  if (!before.empty() && before.front() == "help") {
    Suggestions topics = suggest_command(commands, before.size() > 1 ? before[1] : std::string(), typed);
    // DynamoMQ has no filters.
    const bool filters = before.size() == 1 && &commands == &cli::commands();
    if (filters) {
      add_if_begun(topics, std::string(kFiltersTopic), "How to choose messages", typed);
    }
    return topics;
  }
  const Command* command = command_of(commands, before);
  if (command == nullptr) {
    return before.size() > 1 ? Suggestions() : suggest_command(commands, before.empty() ? "" : before[0], typed);
  }
  if (const auto equals = typed.find('='); begins_with(typed, "--") && equals != std::string::npos) {
    const Flag* flag = flag_of(*command, typed.substr(0, equals));
    return flag == nullptr || flag->value.empty()
               ? Suggestions()
               : with_beginning(suggest_value(*flag, words, typed.substr(equals + 1)), typed.substr(0, equals + 1));
  }
  const Flag* flag = flag_of(*command, before.back());
  if (flag != nullptr && !flag->value.empty()) {
    return suggest_value(*flag, words, typed);
  }
  const Flag* operand = begins_with(typed, "-") ? nullptr : operand_at(*command, before);
  Suggestions found = operand == nullptr ? Suggestions() : suggest_value(*operand, words, typed);
  if (found.words.empty() && !found.files) {
    return suggest_flag(*command, words, typed);
  }
  return found;
}

}  // namespace sluice::cli
