#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace sluice::isolation {

/// A step of a trial (loading a file, making or destroying a handler) may take so long.
inline constexpr Duration kStepLimit = std::chrono::seconds(10);

/// How a trial process ended. A value.
struct TrialEnd {
  std::string step;               ///< the last that it began; empty: none
  std::string cause;              ///< what ended it there, with its last line on stderr; empty: it went through
  bool timed_out = false;         ///< a step took too long
  bool interrupted = false;       ///< it was to end before
  std::vector<std::string> told;  ///< what it told, in order
};

/// What is tried in a process of its own, and how. A value.
struct Trial {
  std::vector<std::string> words;  ///< of its command line
  std::string folder{};            ///< in which it runs; empty: in this process's
  Duration step_limit = kStepLimit;
  int interrupt = -1;  ///< ends it as soon as this can be read; -1: nothing does
};

/// Runs `sluice WORDS... --steps N`, this very program, as a child that does what may crash or hang a process. The
/// child says each step before it takes it (TrialSteps), so that the one that it died of is known. Waits until it has
/// ended, or ends it when a step takes too long or at the interrupt: nothing of it is left then. Fails when there is no
/// process to be had.
Result<TrialEnd> run_trial(Trial trial);

/// In the child: says what comes next, to whoever finds this process dead. Used by one thread at a time.
class TrialSteps {
 public:
  /// `descriptor`: the number behind "--steps". The process ends with the one that started it, and leaves no core.
  explicit TrialSteps(int descriptor);

  /// `name` must have no line break.
  void next(std::string_view step, std::string_view name = {}) const { write(step, name); }
  /// A result, which is no step. One line.
  void tell(std::string_view text) const { write("\t", text); }
  /// All went well: ends the process, without destructors.
  [[noreturn]] void end() const;

 private:
  void write(std::string_view begin, std::string_view rest) const;

  const int descriptor_;
};

}  // namespace sluice::isolation
