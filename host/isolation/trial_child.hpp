#pragma once

#include <sys/types.h>

#include <boost/core/noncopyable.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
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

/// This very program as a child that does what may crash or hang a process. The child says each step before it takes
/// it (TrialSteps), so that the one that it died of is known. A resource of one thread.
class TrialChild : boost::noncopyable {
 public:
  /// `interrupt`: ends the child as soon as it can be read; -1: nothing does.
  explicit TrialChild(Duration step_limit = kStepLimit, int interrupt = -1)
      : step_limit_(step_limit), interrupt_(interrupt) {}

  /// Runs `sluice WORDS... --steps N` in the folder; empty: in this process's. Fails when there is no process to be
  /// had. Nothing of it is to be left without `watch`.
  std::optional<Error> start(std::vector<std::string> words, const std::string& folder = {});
  /// Waits until it has ended, or ends it when a step takes too long or at the interrupt. Nothing of the child is left
  /// then.
  TrialEnd watch();

 private:
  /// The end of a pipe that is read, without waiting.
  struct Listener {
    Descriptor descriptor;
    std::string text;

    void read();
  };

  /// True once the interrupt has come.
  bool listen();
  TrialEnd end_of(std::string cause, bool timed_out) const;

  const Duration step_limit_;
  const int interrupt_;
  Listener steps_;
  Listener said_;
  pid_t pid_ = -1;
};

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
