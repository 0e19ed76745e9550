#pragma once

#include <string>
#include <vector>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {

struct TerminalSession {
  int exit_code = -1;
  std::string text;  ///< all that appeared on the terminal
};

/// Runs the binary in the folder, on a pseudo-terminal of 80 columns, and types `answer` as soon as `prompt` has
/// appeared (an empty one: never). `input`: standard input is a pipe with this, and no terminal.
TerminalSession on_terminal(const HostFolder& folder, std::vector<std::string> words, const std::string& prompt = {},
                            const std::string& answer = {}, const std::string& input = {});

}  // namespace sluice::test
