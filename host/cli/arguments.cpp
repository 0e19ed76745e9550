#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "config/config.hpp"
#include "host/cli/command.hpp"
#include "host/cli/completion.hpp"

namespace sluice::cli {

namespace {

constexpr const char* kOutputVariable = "SLUICE_OUTPUT";

/// An option, or a word that stands alone.
struct Token {
  std::string name;            ///< as it was typed, without dashes; empty: a word
  const Flag* flag = nullptr;  ///< null for a word and for --help
  std::string value;
};

std::string see_help(const Command& command) { return "`sluice help " + std::string(command.name) + "` lists them"; }

Exit unknown_option(const Command& command, const std::string& word) {
  const bool is_long = word.starts_with("--");
  const std::string name = word.substr(is_long ? 2 : 1, word.find('=') - (is_long ? 2 : 1));
  std::vector<std::string> known{"help"};
  for (const Flag& flag : command.flags) {
    known.emplace_back(flag.name);
  }
  const auto meant = nearest_word(name, known);
  return Exit::usage("unknown option " + (is_long ? "--" + name : word) + "; " +
                     (meant ? "did you mean --" + *meant + "?" : see_help(command)));
}

Exit needs_value(const Flag& flag) {
  const std::string name(flag.name);
  return Exit::usage("--" + name + " needs a value: --" + name + " " + std::string(flag.value));
}

/// True for "--queue --yes", where a value was forgotten; "--queue=--yes" means it.
bool is_option(const Command& command, const std::string& value) {
  return value == "--help" || value == "-h" ||
         (value.starts_with("--") && command.flag(value.substr(2, value.find('=') - 2)) != nullptr);
}

/// The option that begins at a word, with the next one where that is its value.
OrExit<Token> option_at(const Command& command, const std::vector<std::string>& words, std::size_t& at) {
  const std::string& word = words[at];
  if (word == "-h") {
    return Token{"help", nullptr, {}};
  }
  const auto equals = word.find('=');
  const std::string name = word.starts_with("--") ? word.substr(2, equals - 2) : std::string();
  const Flag* const flag = command.flag(name);
  if (name != "help" && flag == nullptr) {
    return unknown_option(command, word);
  }
  if (flag == nullptr || flag->value.empty()) {
    return equals == std::string::npos ? OrExit<Token>(Token{name, flag, {}})
                                       : Exit::usage("--" + name + " takes no value; write it without '='");
  }
  if (equals != std::string::npos) {
    return equals + 1 == word.size() ? OrExit<Token>(needs_value(*flag)) : Token{name, flag, word.substr(equals + 1)};
  }
  if (at + 1 == words.size() || is_option(command, words[at + 1])) {
    return needs_value(*flag);
  }
  return Token{name, flag, words[++at]};
}

OrExit<std::vector<Token>> tokens_of(const Command& command, const std::vector<std::string>& words) {
  std::vector<Token> tokens;
  bool options = true;
  for (std::size_t at = 0; at < words.size(); ++at) {
    if (options && words[at] == "--") {
      options = false;
    } else if (!options || words[at].size() < 2 || words[at].front() != '-') {
      tokens.push_back({{}, nullptr, words[at]});
    } else {
      SLUICE_TRY(token, option_at(command, words, at));
      tokens.push_back(std::move(*token));
    }
  }
  return tokens;
}

/// Where the next word without an option belongs; null when the command takes no more of them.
const Flag* next_operand(const Command& command, const Arguments& given) {
  for (const std::string_view name : command.positional) {
    const Flag* flag = command.flag(name);
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
      alone += " " + std::string(command.flag(operand)->value);
    }
    alone += "` or ";
  }
  const std::string name(flag.name);
  return Exit::usage("--" + name + (empty ? " is empty" : " is missing") + "; write " + alone + "--" + name + " " +
                     std::string(flag.value));
}

}  // namespace

const Flag* Command::flag(std::string_view word) const {
  const auto found =
      std::find_if(flags.begin(), flags.end(), [word](const Flag& flag) { return flag.is_called(word); });
  return found == flags.end() ? nullptr : &*found;
}

OrExit<Arguments> Arguments::parse(const Command& command, const std::vector<std::string>& words) {
  SLUICE_TRY(tokens, tokens_of(command, words));
  Arguments arguments;
  std::map<std::string, std::vector<std::string>> alone;
  for (Token& token : *tokens) {
    if (token.name == "help") {
      arguments.help_ = true;
    } else if (token.flag != nullptr) {
      auto& values = arguments.values_[std::string(token.flag->name)];
      if (!values.empty() && !token.flag->repeated) {
        return Exit::usage("--" + token.name + " is given twice; give it once");
      }
      values.push_back(std::move(token.value));
    } else if (command.stdin_operand && token.value == "-" && !arguments.stdin_) {
      arguments.stdin_ = true;
    } else if (const Flag* operand = next_operand(command, arguments)) {
      if (operand->repeated && token.value.empty()) {
        return Exit::usage("an empty word stands where " + std::string(operand->value) + " should");
      }
      const std::string name(operand->name);
      (operand->repeated ? alone[name] : arguments.values_[name]).push_back(std::move(token.value));
    } else {
      return Exit::usage("unexpected word \"" + token.value + "\"; `sluice help " + std::string(command.name) +
                         "` shows what it takes");
    }
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
  if (has("json") && has("output")) {
    return Exit::usage("--json and --output exclude each other; give one");
  }
  const auto variable = config::process_environment()(kOutputVariable);
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
  return Exit::usage((has("output") ? "--output \"" : std::string(kOutputVariable) + "=\"") + word +
                     "\" is neither json nor text; write one of these");
}

OrExit<Output> Arguments::output_or_text() const {
  const bool said =
      has("json") || has("output") || !config::process_environment()(kOutputVariable).value_or("").empty();
  return said ? output() : OrExit<Output>(Output::text);
}

}  // namespace sluice::cli
