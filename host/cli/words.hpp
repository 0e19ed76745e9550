#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "host/cli/command.hpp"

/// What the words of a typed line mean to the command that they name.
namespace sluice::cli {

/// Splits a line as a POSIX shell does, without expanding anything: 'as it is', "with \" and \\", a\ b, # comment.
/// ErrorCode::invalid with the column of a quote that is never closed, or of a backslash at the end.
Result<std::vector<std::string>> split_words(std::string_view line);

/// "a|b" as its parts; none of an empty text.
std::vector<std::string> split(std::string_view text, char separator);

/// Whether the text can stand on a line that is edited: false where it would break the line or steer the terminal.
bool can_stand_on_line(std::string_view text);

/// A line of DynamoMQ's interactive mode: its first word in lower case, and the others as they are. No quoting.
struct TypedCommand {
  std::string name;
  std::vector<std::string> parameters;
};
TypedCommand parse_input(std::string_view line);

/// "where" of "--where" and of "--where=..."; empty for other words.
std::string_view option_name(std::string_view word);

/// Whether a word gives an option of that name.
bool gives(const std::vector<std::string>& words, std::string_view name);
bool gives(const std::vector<std::string>& words, const Flag& flag);
/// The value of the option of that name: behind its '=', or the word after it. Empty where there is none.
std::string given_value(const std::vector<std::string>& words, std::string_view name);
/// The option whose value the word after this one is; null when that stands for itself.
const Flag* awaits_value(const Command& command, std::string_view word);

/// Whether a queue may stand as the first plain word before the ids or the key that a command takes so. Where no plain
/// word belongs to a command with --queue, it is that option's own.
bool queue_stands_first(const std::vector<Flag>& flags);

/// The plain words behind a command's name: neither options nor their values.
std::vector<std::string> plain_words(const Command& command, const std::vector<std::string>& words);
/// The same, where its name ends before the word `from`.
std::vector<std::string> plain_words(const Command& command, const std::vector<std::string>& words, std::size_t from);
/// Those that name messages, of a command that takes them.
std::vector<std::string> plain_ids(const Command& command, const std::vector<std::string>& words);

/// Whether the word after `before` may be a message's id: of a command that takes one as a plain word.
bool names_messages(const std::vector<std::string>& before, std::string_view typed);

}  // namespace sluice::cli
