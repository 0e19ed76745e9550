#pragma once

#include "base/clock.hpp"

namespace sluice::work {

/// Until when a thread sleeps that was given nothing to do, so that it is woken for what must be done earlier and for
/// nothing else. Not thread-safe.
class Alarm {
 public:
  /// True when the thread must be woken for what is to be done at `time`.
  bool set(SteadyTime time) {
    if (time >= time_) {
      return false;
    }
    time_ = time;
    return true;
  }
  void sleeps_until(SteadyTime time) { time_ = time; }
  /// It comes back by itself.
  void is_busy() { time_ = SteadyTime::min(); }

 private:
  SteadyTime time_ = SteadyTime::min();
};

}  // namespace sluice::work
