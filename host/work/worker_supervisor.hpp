#pragma once

#include "base/clock.hpp"
#include "host/work/assessor.hpp"
#include "host/work/dispatcher.hpp"
#include "host/work/step_effects.hpp"
#include "host/work/workforce.hpp"

namespace sluice::work {

/// A worker that has not come back with its handful by then is deep in a long attempt: the rest is taken from it.
inline constexpr Duration kLateHandful = std::chrono::milliseconds(20);

/// Watches the workers: takes late handfuls back, gives up handlers that do not return, and has workers made in the
/// place of those that are lost. Not thread-safe.
class WorkerSupervisor {
 public:
  WorkerSupervisor(Workforce& workforce, Dispatcher& dispatcher, Assessor& assessor);

  /// Looks at everybody; says when to look again.
  SteadyTime inspect(SteadyTime now, StepEffects& notes);
  /// When to look at a worker that was given work just now.
  SteadyTime next_look(std::uint32_t seat) const;
  /// StepEffects the threads that are to be made; says when to ask again.
  SteadyTime hire(SteadyTime now, StepEffects& notes);

 private:
  void look_at(std::uint32_t seat, SteadyTime now, StepEffects& notes);

  Workforce& workforce_;
  Dispatcher& dispatcher_;
  Assessor& assessor_;
};

}  // namespace sluice::work
