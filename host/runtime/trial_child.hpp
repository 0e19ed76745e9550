#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace sluice::runtime {

/// How a trial process ended. A value.
struct TrialEnd {
  std::string step;   ///< the last that it began; empty: none
  std::string cause;  ///< what ended it there, with its last line on stderr; empty: it went through
};

/// Starts `program` with `words` and `--steps FD`, on which it writes a line before each step and "end" after the last,
/// and waits for its end. One whose step takes longer than `limit` is killed, with all that it started.
/// Fails when there is no process to be had. Blocks; one at a time for a thread, which the child does not outlive.
Result<TrialEnd> run_trial_child(const std::string& program, const std::vector<std::string>& words, Duration limit);

}  // namespace sluice::runtime
