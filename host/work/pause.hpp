#pragma once

#include "base/clock.hpp"
#include "host/work/claimer.hpp"
#include "host/work/dispatcher.hpp"
#include "host/work/settler.hpp"
#include "host/work/step_effects.hpp"

namespace sluice::work {

/// Decides whether a job begins anything. While it is paused nothing is claimed and no handler starts; what was claimed
/// and has not started goes back at once, without burning an attempt; what runs goes on to its end. Not thread-safe.
class Pause {
 public:
  Pause(Dispatcher& dispatcher, Settler& settler, Claimer& claimer)
      : dispatcher_(dispatcher), settler_(settler), claimer_(claimer) {}

  void begin(SteadyTime now);
  void end(StepEffects& notes);
  /// A message has come that a claim under way has brought.
  void turn_away(Task& task, SteadyTime now);

  bool on() const { return on_; }

 private:
  Dispatcher& dispatcher_;
  Settler& settler_;
  Claimer& claimer_;
  bool on_ = false;
};

}  // namespace sluice::work
