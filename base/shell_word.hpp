#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// The text as one word of a command line, for messages that name a command: in quotes where a POSIX shell needs them.
std::string shell_word(std::string_view text);

}  // namespace sluice
