#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace sluice::cli {

/// Splits a line as a POSIX shell does, without expanding anything: 'as it is', "with \" and \\", a\ b, # comment.
/// ErrorCode::invalid with the column of a quote that is never closed, or of a backslash at the end.
Result<std::vector<std::string>> split_words(std::string_view line);

/// The text as one word of such a line, quoted only where it must be.
std::string quoted_word(std::string_view word);

/// Whether the text can stand on a line that is edited: false where it would break the line or steer the terminal.
bool can_stand_on_line(std::string_view text);

/// A line of DynamoMQ's interactive mode: its first word in lower case, and the others as they are. No quoting.
struct TypedCommand {
  std::string name;
  std::vector<std::string> parameters;
};
TypedCommand parse_input(std::string_view line);

}  // namespace sluice::cli
