#pragma once

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace sluice::test {

/// The machine's clock, and as far ahead of it as a test says. Thread-safe.
class AheadClock final : public Clock {
 public:
  WallTime wall_now() const override { return system_.wall_now(); }
  SteadyTime steady_now() const override {
    const MutexLock lock(mutex_);
    return system_.steady_now() + ahead_;
  }
  void advance(Duration span) {
    const MutexLock lock(mutex_);
    ahead_ += span;
  }

 private:
  SystemClock system_;
  mutable Mutex mutex_;
  Duration ahead_ SLUICE_GUARDED_BY(mutex_){};
};

}  // namespace sluice::test
