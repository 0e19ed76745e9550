#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/cli/command.hpp"

/// What the words of a typed line mean to the command that they name.
namespace sluice::cli {

/// The command that the words begin with; null when there is none.
const Command* command_of(const std::vector<std::string>& words);

/// The command's flag of that name or alias; null when it has none.
const Flag* flag_of(const Command& command, std::string_view name);

/// "where" of "--where" and of "--where=..."; empty for other words.
std::string_view option_name(std::string_view word);

/// The word that gives an option of that name; null when none does.
const std::string* given(const std::vector<std::string>& words, std::string_view name);
bool gives(const std::vector<std::string>& words, const Flag& flag);

/// The plain words that name messages, of a command that takes them: neither its name nor options nor their values.
std::vector<std::string> plain_ids(const Command& command, const std::vector<std::string>& words);

/// Whether the word after `before` may be a message's id: of a command that takes one as a plain word.
bool names_messages(const std::vector<std::string>& before, std::string_view typed);

}  // namespace sluice::cli
