#pragma once

#include <algorithm>
#include <boost/system/result.hpp>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "config/config.hpp"
#include "host/cli/console.hpp"

namespace sluice::cli {

// Exit codes that scripts rely on; those from 64 on are sysexits.h's.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 64;
inline constexpr int kExitInternal = 70;
inline constexpr int kExitAbandoned = 75;
inline constexpr int kExitConfiguration = 78;
// As the shell reports a process that the signal ended.
inline constexpr int kExitInterrupted = 130;
inline constexpr int kExitBrokenPipe = 141;

/// How a command ends: its exit code, and the lines on stderr that say why; one, except where several things are wrong
/// at once. A value.
class [[nodiscard]] Exit {
 public:
  // The default constructor exists because boost::system::result asks for it.
  Exit() = default;
  /// Exit 1 with its message.
  Exit(const Error& error) : Exit(kExitFailure, error.message()) {}
  /// Exit 78 with every error of a configuration file.
  Exit(const std::vector<config::ConfigError>& errors, int code = kExitConfiguration);
  Exit(int code, std::string line) : code_(code), lines_{std::move(line)} {}
  Exit(int code, std::vector<std::string> lines) : code_(code), lines_(std::move(lines)) {}

  static Exit ok() { return {}; }
  static Exit usage(std::string message) { return {kExitUsage, std::move(message)}; }
  static Exit failure(std::string message) { return {kExitFailure, std::move(message)}; }
  /// Failed where there are lines that say why.
  static Exit failed_if_any(std::vector<std::string> lines) {
    return lines.empty() ? Exit() : Exit(kExitFailure, std::move(lines));
  }
  /// Without a word: the output has said it, or nobody reads.
  static Exit silent(int code) { return {code, std::vector<std::string>()}; }

  int code() const { return code_; }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  int code_ = kExitOk;
  std::vector<std::string> lines_;
};

/// A value, or how the command ends without it.
template <typename T>
using OrExit = boost::system::result<T, Exit>;

/// An answer, or how the command ends for its error.
template <typename Answer, typename ExitOf>
auto or_end(Answer answer, ExitOf exit_of) {
  using Ended = OrExit<typename Answer::value_type>;
  return answer ? Ended(std::move(*answer)) : Ended(exit_of(answer.error()));
}
/// The same where the exit code says enough; `prefix` stands before the error.
template <typename T>
OrExit<T> or_exit(int code, Result<T> answer, const std::string& prefix = {}) {
  return or_end(std::move(answer), [&](const Error& error) { return Exit(code, prefix + error.message()); });
}
/// What the command line asks for; exit 64 where that is wrong.
template <typename T>
OrExit<T> or_usage(Result<T> answer, const std::string& prefix = {}) {
  return or_exit(kExitUsage, std::move(answer), prefix);
}

/// Prints what was asked for; a success.
inline Exit print(std::string_view text, Console& console) {
  console.out(text);
  return Exit::ok();
}

/// One option of a command, as its parser and its help need it.
struct Flag {
  std::string_view name{};   ///< without the dashes
  std::string_view value{};  ///< what its help calls the value, such as "QUEUE"; empty: a switch
  std::string_view help{};
  bool required = false;
  bool repeated = false;
  /// Its value may stand alone: `sluice scale mailer 16` is --job mailer --workers 16, in the order of the flags. One
  /// that is repeated takes every word from its place on: `sluice delete A-1 A-2`.
  bool alone = false;
  bool common = false;       ///< one of those that say where the queue is; listed under a heading of their own
  std::string_view alias{};  ///< another name, accepted and not shown
  /// Its value is not empty: a variable of the shell that is not set must not mean "whichever there is", or "from the
  /// beginning".
  bool filled = false;
  bool one_of = false;         ///< its value is one of the words in `value`, "json|text"
  std::string_view with{};     ///< the option without which it means nothing, or "-"
  std::string_view against{};  ///< those that contradict it, "dlq|both", or "-"

  /// Without `dashes`, by its name or its other one.
  bool is_called(std::string_view word) const { return word == name || (!alias.empty() && word == alias); }
};

class Arguments;

/// One command. `sluice table create` is a command with a name of two words.
struct Command {
  std::string_view name{};
  std::string_view alias{};        ///< another name for it
  std::string_view group{};        ///< its heading in `sluice help`, which `commands` fills in
  std::string_view summary{};      ///< one line of `sluice help`
  std::string_view usage{};        ///< what follows the name in the usage line
  std::string_view description{};  ///< paragraphs of `sluice help NAME`, separated by empty lines
  std::vector<Flag> flags{};
  std::string_view examples{};  ///< lines, indented by the help
  bool stdin_operand = false;   ///< takes "-" beside its options
  /// How it shows what it found where nobody says it and no terminal does: text of those of which everybody expects it.
  Output elsewhere = Output::json;
  std::function<Exit(const Arguments& arguments, Console& console)> run{};

  /// Null when it has no such option.
  const Flag* flag(std::string_view word) const;
  /// How many words its name has.
  std::size_t name_words() const { return 1 + static_cast<std::size_t>(std::count(name.begin(), name.end(), ' ')); }
};

/// Options that hold for many lines, by their names, such as {"queue", "orders"}: what a shell remembers.
using RememberedOptions = std::map<std::string, std::string, std::less<>>;

/// The options that a command was given, checked against its flags. A value.
class Arguments {
 public:
  /// Reads the words after the command's name. Exit 64 with one line for an unknown option (naming the nearest), a
  /// missing or empty value, an option given twice, a missing one, one that its flag does not allow beside others, or a
  /// word that belongs to nothing: neither an option's value nor one of those that may stand alone.
  /// `queue_first`: the first plain word names the queue, and is no id or key. `unsaid`: what holds beside the words.
  static OrExit<Arguments> parse(const Command& command, const std::vector<std::string>& words,
                                 bool queue_first = false, const RememberedOptions& unsaid = {});
  /// The same of a line that may be half-written or wrong: what it has so far. Words that belong to nothing are passed
  /// over, and of an option that lacks its value the text is empty.
  static Arguments of_line(const Command& command, std::span<const std::string> words);
  /// Those of the remembered options that hold for this line: the command takes them, and nothing that the line has is
  /// the same or contradicts them.
  RememberedOptions unsaid(const RememberedOptions& remembered) const;
  /// Takes them as if they had been typed.
  void add(const RememberedOptions& unsaid);
  /// Options that somebody else has read and checked, and the words beside them.
  static Arguments of(const RememberedOptions& options, std::vector<std::string> plain = {});

  /// Whose they are; null where somebody else has read them.
  const Command* command() const { return command_; }
  bool has(std::string_view name) const;
  /// The value, or `fallback` when the option was not given.
  std::string get(std::string_view name, std::string_view fallback = {}) const;
  /// Every value of a repeated option: those that stood alone, then the others, each in order.
  std::vector<std::string> all(std::string_view name) const;
  /// The value as a number from 1 to `max`, or `fallback` when not given; exit 64 for anything else.
  OrExit<std::size_t> count(std::string_view name, std::size_t fallback, std::size_t max) const;
  /// The value as a duration such as "30s" within bounds, or `fallback` when not given; exit 64 for anything else.
  OrExit<Duration> duration(std::string_view name, Duration fallback, Duration least = Duration::zero(),
                            Duration most = Duration::max()) const;
  /// The one place that decides: --output or --json, else the SLUICE_OUTPUT variable, else text where standard output
  /// is a terminal and `elsewhere` where it is not. Exit 64 for another word.
  OrExit<Output> output(Output elsewhere) const;

  /// The words that are neither options nor their values, in order, but for the "-" that is standard input.
  const std::vector<std::string>& plain() const { return words_; }
  /// The option whose value the next word would be; null where that would stand for itself.
  const Flag* awaited() const { return awaited_; }
  bool wants_help() const { return help_; }
  /// The message that the first plain word names, where no option names a queue or a table and the word may have been
  /// meant for a queue; empty: there is none.
  const std::string& plain_id() const { return plain_id_; }
  /// True when "-" was given.
  bool reads_stdin() const { return stdin_; }

 private:
  /// Reads what can be read. What cannot be goes to `wrong`, options first.
  static Arguments read(const Command& command, std::span<const std::string> words, bool queue_first,
                        std::vector<Exit>& wrong);
  /// Whether it contradicts a remembered option of that flag.
  bool contradicts(const Flag& flag) const;
  /// Whether what is given agrees with what the flag says of itself.
  OrExit<void> check(const Flag& flag) const;

  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::set<std::string, std::less<>> plain_;  ///< options that were given as plain words
  std::vector<std::string> words_;
  std::string plain_id_;
  const Command* command_ = nullptr;
  const Flag* awaited_ = nullptr;
  bool help_ = false;
  bool stdin_ = false;
};

/// Where the next word without an option belongs; null when the command takes no more of them.
const Flag* next_operand(const Command& command, const Arguments& given);

/// All of them, in the order of `sluice help`.
const std::vector<Command>& commands();

/// The command of that name or alias among those; null when there is none.
const Command* find_command(const std::vector<Command>& commands, std::string_view name);
/// The one that the words begin with, of one word or two.
const Command* find_command(const std::vector<Command>& commands, const std::vector<std::string>& words);
inline const Command* find_command(std::string_view name) { return find_command(commands(), name); }

/// Runs the command that the words name and says on stderr why it failed. Returns the process's exit code.
int run_command_line(const std::vector<std::string>& words, Console& console, const RememberedOptions& remembered = {});

// What `commands` puts together, each in a file of its own.
std::vector<Command> host_commands();
std::vector<Command> plugin_commands();
std::vector<Command> plugin_file_commands();
std::vector<Command> new_commands();
std::vector<Command> try_commands();
std::vector<Command> dev_commands();
std::vector<Command> validate_commands();
std::vector<Command> fleet_commands();
std::vector<Command> top_commands();
std::vector<Command> steering_commands();
std::vector<Command> send_commands();
std::vector<Command> look_commands();
std::vector<Command> count_commands();
std::vector<Command> copy_commands();
std::vector<Command> move_commands();
std::vector<Command> key_commands();
std::vector<Command> bulk_commands();
std::vector<Command> edit_commands();
std::vector<Command> outbox_commands();
std::vector<Command> table_commands();
std::vector<Command> completion_commands();
Command shell_command();

}  // namespace sluice::cli
