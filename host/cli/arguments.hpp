#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "host/cli/exit.hpp"

namespace sluice::cli {

struct Command;

/// How a command shows what it found.
enum class Output { json, text };

/// The options that a command was given, checked against its flags. A value.
class Arguments {
 public:
  /// Reads the words after the command's name. Exit 64 with one line for an unknown option (naming the nearest), a
  /// missing or empty value, an option given twice, a missing one, or a word that belongs to nothing: neither an
  /// option's value nor one of those that may stand alone.
  static OrExit<Arguments> parse(const Command& command, const std::vector<std::string>& words);
  /// Options that somebody else has read and checked, by their names.
  static Arguments of(const std::map<std::string, std::string>& values);

  bool has(std::string_view name) const;
  /// The value, or `fallback` when the option was not given.
  std::string get(std::string_view name, std::string_view fallback = {}) const;
  /// Every value of a repeated option: those that stood alone, then the others, each in order.
  std::vector<std::string> all(std::string_view name) const;
  /// The value as a number from 1 to `max`, or `fallback` when not given; exit 64 for anything else.
  OrExit<std::size_t> count(std::string_view name, std::size_t fallback, std::size_t max) const;
  /// The value as a duration such as "30s", or `fallback` when not given; exit 64 for anything else.
  OrExit<Duration> duration(std::string_view name, Duration fallback) const;
  /// The one place that decides: --output or --json, else the SLUICE_OUTPUT variable, else text where standard output
  /// is a terminal and JSON where it is not. Exit 64 for another word, and for --json beside --output.
  OrExit<Output> output() const;

  bool wants_help() const { return help_; }
  /// True when "-" was given.
  bool reads_stdin() const { return stdin_; }

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  bool help_ = false;
  bool stdin_ = false;
};

}  // namespace sluice::cli
