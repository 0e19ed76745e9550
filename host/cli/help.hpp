#pragma once

#include <string>
#include <string_view>

#include "host/cli/command.hpp"

namespace sluice::cli {

/// `sluice help`.
std::string general_help();

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

}  // namespace sluice::cli
