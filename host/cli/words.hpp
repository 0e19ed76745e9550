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

/// Whether a queue may stand as the first plain word before the ids or the key that a command takes so. Where no plain
/// word belongs to a command with --queue, it is that option's own.
bool queue_stands_first(const std::vector<Flag>& flags);

}  // namespace sluice::cli
