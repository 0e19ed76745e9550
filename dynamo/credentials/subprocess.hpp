#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "dynamo/error.hpp"

namespace sluice::dynamo {

/// Splits a command line into its arguments: blanks part them, single quotes keep everything, double quotes everything
/// but \" and \\, a backslash the next sign. No expansion of any kind. ErrorKind::no_credentials for a quote that never
/// ends. Pure.
Result<std::vector<std::string>> split_command(std::string_view text);

/// Runs a program without a shell, with no input, and gives what it writes to its output; its errors go where ours go.
/// Blocks until it has ended or the deadline passes, then it is killed with all that it started in its group.
/// ErrorKind::no_credentials when it cannot be started, fails, writes more than `max_output` bytes or takes too long;
/// the output is never part of the message.
Result<std::string> run_program(const std::vector<std::string>& arguments, std::size_t max_output, const Clock& clock,
                                Deadline deadline);

}  // namespace sluice::dynamo
