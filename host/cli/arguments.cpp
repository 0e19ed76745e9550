#include "host/cli/arguments.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>

#include "config/config.hpp"
#include "host/cli/command.hpp"
#include "host/cli/suggestions.hpp"

namespace sluice::cli {

namespace {

namespace po = boost::program_options;

po::options_description describe(const Command& command) {
  po::options_description description;
  auto add = description.add_options();
  add("help,h", "");
  for (const Flag& flag : command.flags) {
    const std::string name(flag.name);
    if (flag.value.empty()) {
      add(name.c_str(), "");
    } else {
      add(name.c_str(), po::value<std::string>(), "");
    }
    if (!flag.alias.empty()) {
      add(std::string(flag.alias).c_str(), po::value<std::string>(), "");
    }
  }
  return description;
}

std::string see_help(const Command& command) { return "`sluice help " + std::string(command.name) + "` lists them"; }

/// "--name" without its value, as far as the parser kept it.
std::string spelled(const std::string& option) {
  const auto begin = option.find_first_not_of('-');
  return begin == std::string::npos ? "-" : option.substr(begin, option.find('=', begin) - begin);
}

Exit unknown_option(const Command& command, const std::string& option) {
  const std::string name = spelled(option);
  std::vector<std::string> known{"help"};
  for (const Flag& flag : command.flags) {
    known.emplace_back(flag.name);
  }
  const auto meant = nearest_word(name, known);
  const bool is_short = option.size() > 1 && option[0] == '-' && option[1] != '-';
  return Exit::usage("unknown option " + (is_short ? option : "--" + name) + "; " +
                     (meant ? "did you mean --" + *meant + "?" : see_help(command)));
}

const Flag* find_flag(const Command& command, std::string_view name) {
  const auto found = std::find_if(command.flags.begin(), command.flags.end(), [name](const Flag& flag) {
    return flag.name == name || (!name.empty() && flag.alias == name);
  });
  return found == command.flags.end() ? nullptr : &*found;
}

Exit needs_value(const Flag& flag) {
  const std::string name(flag.name);
  return Exit::usage("--" + name + " needs a value: --" + name + " " + std::string(flag.value));
}

/// True for "--queue --yes", where a value was forgotten; "--queue=--yes" means it.
bool swallows_option(const Command& command, const po::option& option) {
  if (option.original_tokens.size() < 2 || option.value.empty()) {
    return false;
  }
  const std::string& value = option.value.front();
  return value == "--help" || (value.rfind("--", 0) == 0 && find_flag(command, spelled(value)) != nullptr);
}

Exit bad_syntax(const Command& command, const po::invalid_command_line_syntax& error) {
  const std::string name = spelled(error.get_option_name());
  const Flag* flag = find_flag(command, name);
  if (flag == nullptr || flag->value.empty()) {
    return Exit::usage("--" + name + " takes no value; write it without '='");
  }
  return needs_value(*flag);
}

OrExit<po::parsed_options> tokens(const Command& command, const std::vector<std::string>& words,
                                  const po::options_description& description) {
  namespace style = po::command_line_style;
  const int accepted = style::allow_long | style::long_allow_adjacent | style::long_allow_next | style::allow_short |
                       style::allow_dash_for_short | style::short_allow_next;
  // The library tells of a wrong command line by exceptions only.
  try {
    return po::command_line_parser(words).options(description).style(accepted).run();
  } catch (const po::unknown_option& error) {
    const auto& original = error.get_option_name();
    return unknown_option(command, original);
  } catch (const po::invalid_command_line_syntax& error) {
    return bad_syntax(command, error);
  } catch (const po::error& error) {
    return Exit::usage(std::string(error.what()) + "; " + see_help(command));
  }
}

/// Where the next word without an option belongs; null when the command takes no more of them.
const Flag* next_operand(const Command& command, const Arguments& given) {
  for (const std::string_view name : command.positional) {
    const Flag* flag = find_flag(command, name);
    if (flag->repeated || !given.has(name)) {
      return flag;
    }
  }
  return nullptr;
}

/// "--job is missing; write --job JOB", and the short form where the value may stand alone.
Exit missing(const Command& command, const Flag& flag, bool empty) {
  std::string alone;
  if (std::find(command.positional.begin(), command.positional.end(), flag.name) != command.positional.end()) {
    alone = "`sluice " + std::string(command.name);
    for (const std::string_view operand : command.positional) {
      alone += " " + std::string(find_flag(command, operand)->value);
    }
    alone += "` or ";
  }
  const std::string name(flag.name);
  return Exit::usage("--" + name + (empty ? " is empty" : " is missing") + "; write " + alone + "--" + name + " " +
                     std::string(flag.value));
}

}  // namespace

OrExit<Arguments> Arguments::parse(const Command& command, const std::vector<std::string>& words) {
  const auto description = describe(command);
  SLUICE_TRY(parsed, tokens(command, words, description));
  Arguments arguments;
  std::map<std::string, std::vector<std::string>> alone;
  for (const auto& option : parsed->options) {
    if (option.string_key.empty()) {
      const std::string word = option.value.empty() ? std::string() : option.value.front();
      if (command.stdin_operand && word == "-" && !arguments.stdin_) {
        arguments.stdin_ = true;
        continue;
      }
      if (const Flag* operand = next_operand(command, arguments)) {
        if (operand->repeated && word.empty()) {
          return Exit::usage("an empty word stands where " + std::string(operand->value) + " should");
        }
        auto& values =
            operand->repeated ? alone[std::string(operand->name)] : arguments.values_[std::string(operand->name)];
        values.push_back(word);
        continue;
      }
      return Exit::usage("unexpected word \"" + word + "\"; `sluice help " + std::string(command.name) +
                         "` shows what it takes");
    }
    if (option.string_key == "help") {
      arguments.help_ = true;
      continue;
    }
    const Flag* flag = find_flag(command, option.string_key);
    auto& values = arguments.values_[std::string(flag->name)];
    if (!values.empty() && !flag->repeated) {
      return Exit::usage("--" + option.string_key + " is given twice; give it once");
    }
    if (swallows_option(command, option)) {
      return needs_value(*flag);
    }
    values.push_back(option.value.empty() ? std::string() : option.value.front());
  }
  if (arguments.help_) {
    return arguments;
  }
  for (auto& [name, words_alone] : alone) {
    auto& values = arguments.values_[name];
    values.insert(values.begin(), words_alone.begin(), words_alone.end());
  }
  for (const Flag& flag : command.flags) {
    if (flag.required && arguments.get(flag.name).empty()) {
      return missing(command, flag, arguments.has(flag.name));
    }
  }
  return arguments;
}

Arguments Arguments::of(const std::map<std::string, std::string>& values) {
  Arguments arguments;
  for (const auto& [name, value] : values) {
    arguments.values_[name].push_back(value);
  }
  return arguments;
}

bool Arguments::has(std::string_view name) const { return values_.find(name) != values_.end(); }

std::string Arguments::get(std::string_view name, std::string_view fallback) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string(fallback) : found->second.front();
}

std::vector<std::string> Arguments::all(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

OrExit<std::size_t> Arguments::count(std::string_view name, std::size_t fallback, std::size_t max) const {
  if (!has(name)) {
    return fallback;
  }
  const std::string text = get(name);
  std::size_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value < 1 || value > max) {
    return Exit::usage("--" + std::string(name) + " " + text + ": write a whole number from 1 to " +
                       std::to_string(max));
  }
  return value;
}

OrExit<Duration> Arguments::duration(std::string_view name, Duration fallback) const {
  if (!has(name)) {
    return fallback;
  }
  const std::string text = get(name);
  const auto value = config::parse_duration(text);
  if (!value) {
    return Exit::usage("--" + std::string(name) + " " + text + " is no duration; write 1500ms, 30s, 15m, 2h or 1d");
  }
  return *value;
}

OrExit<Output> Arguments::output() const {
  constexpr const char* kVariable = "SLUICE_OUTPUT";
  if (has("json") && has("output")) {
    return Exit::usage("--json and --output exclude each other; give one");
  }
  const auto variable = config::process_environment()(kVariable);
  const std::string word = has("json") ? "json" : get("output", variable.value_or(std::string()));
  if (word.empty() && !has("output")) {
    return ::isatty(STDOUT_FILENO) == 1 ? Output::text : Output::json;
  }
  if (word == "json") {
    return Output::json;
  }
  if (word == "text") {
    return Output::text;
  }
  return Exit::usage((has("output") ? "--output \"" : std::string(kVariable) + "=\"") + word +
                     "\" is neither json nor text; write one of these");
}

}  // namespace sluice::cli
