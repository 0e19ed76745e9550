#pragma once

#include <chrono>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace sluice::test {

/// A clock that stands still until a test moves it. Thread-safe.
///
/// Waits that ask the clock for the machine's time end at once. Others wait on the machine's clock: it starts one second
/// after the monotonic epoch, which every running machine has long passed, so that they end at once too.
class FakeClock final : public Clock {
 public:
  /// 2026-01-02T03:04:05Z on the wall.
  FakeClock() : FakeClock(WallTime(std::chrono::seconds(1'767'323'045))) {}
  explicit FakeClock(WallTime wall) : wall_(wall), steady_(std::chrono::seconds(1)) {}

  WallTime wall_now() const override {
    const MutexLock lock(mutex_);
    return wall_;
  }
  SteadyTime steady_now() const override {
    const MutexLock lock(mutex_);
    return steady_;
  }

  SteadyTime machine_time(SteadyTime time) const override {
    return time == SteadyTime::max() ? time : SteadyTime::min();
  }

  /// Lets time pass on both clocks.
  void advance(Duration span) {
    const MutexLock lock(mutex_);
    wall_ += span;
    steady_ += span;
  }
  /// Makes the wall clock jump, in either direction; the monotonic one does not notice.
  void set_wall(WallTime wall) {
    const MutexLock lock(mutex_);
    wall_ = wall;
  }
  void set_steady(SteadyTime steady) {
    const MutexLock lock(mutex_);
    steady_ = steady;
  }

 private:
  mutable Mutex mutex_;
  WallTime wall_ SLUICE_GUARDED_BY(mutex_);
  SteadyTime steady_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::test
