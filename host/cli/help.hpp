#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/cli/command.hpp"

namespace sluice::cli {

/// `sluice help`.
std::string general_help();

/// The commands that are so, by their groups; for people.
std::string listed_commands(bool (*is_listed)(const Command& command));

/// `sluice help NAME`: summary, usage, options, examples; lines of at most 80 columns.
std::string command_help(const Command& command);

/// `sluice help table`: the commands whose names begin with that word.
std::string family_help(std::string_view first_word);

/// What `sluice help` calls the page on choosing messages.
inline constexpr std::string_view kFiltersTopic = "filters";
/// The language of --where on a page, with the other ways to choose messages.
std::string_view filters_help();

/// The word that makes the program write what an installation brings beside it. For the build; no help names it.
inline constexpr const char* kShareFilesWord = "__share";
/// Writes manual pages and completions below `folder`, which is laid out as a prefix's share/ is. They are made from
/// what help is made from, so that neither knows a command or an option that the other does not.
Exit write_share_files(const std::string& folder);

/// What may stand where somebody is typing a word.
struct Suggestions {
  struct Word {
    std::string text;
    std::string meaning;  ///< one line; may be empty
  };
  std::vector<Word> words;
  bool files = false;  ///< a file's name may stand there

  /// As the shells' scripts read it: "text<TAB>meaning" a line, and a last line ":files".
  std::string lines() const;
};

/// The word that is meant by a wrong one: near to it in spelling, or the beginning of it or the other way round.
std::optional<std::string> nearest_word(const std::string& wrong, const std::vector<std::string>& known);

/// The first words of those commands' names, each once; those that are another name for one are not among them.
std::vector<std::string> first_words(const std::vector<Command>& commands);

/// What an option whose value is called so, such as QUEUE, JOB or ID, may name; `line` is what the line has so far.
using KnownNames = std::function<std::vector<std::string>(std::string_view kind, const Arguments& line)>;
/// As the host file and its jobs know it.
std::vector<std::string> names_in_files(std::string_view kind, const Arguments& line);

/// For the last one of the words after the program's name: commands, options, and values that are known: words to
/// choose from, and what `known` has. `remembered`: what a shell adds to the line. Never fails; what cannot be read
/// suggests nothing.
Suggestions suggest(const std::vector<Command>& commands, const std::vector<std::string>& words,
                    const RememberedOptions& remembered = {}, const KnownNames& known = names_in_files);

/// The script that completes a program's words in "bash", "zsh", "fish" or "powershell"; nothing for another
/// shell.
std::optional<std::string> completion_for(std::string_view shell, std::string_view program);

}  // namespace sluice::cli
