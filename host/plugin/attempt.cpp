#include "host/plugin/attempt.hpp"

namespace sluice::plugin {

namespace {

SteadyTime saturating_sum(SteadyTime time, Duration span) {
  const Duration positive = std::max(span, Duration::zero());
  return positive >= SteadyTime::max() - time ? SteadyTime::max() : time + positive;
}

}  // namespace

void Attempt::request_stop(SteadyTime end) {
  {
    // Under the lock, so that a waiter cannot miss it between its look and its sleep.
    const MutexLock lock(mutex_);
    end_.store(std::min(end_.load(), end.time_since_epoch().count()));
    stop_.store(true);
    if (watcher_ != nullptr) {
      watcher_->stop_requested(drain_end(), lost_.load());
    }
  }
  stopped_.notify_all();
}

bool Attempt::wait_for_stop(Duration timeout) {
  // A thread sleeps on the machine's clock, whatever clock the attempt goes by.
  const SystemClock machine;
  const SteadyTime end = saturating_sum(machine.steady_now(), timeout);
  MutexLock lock(mutex_);
  while (!stop_requested()) {
    const SteadyTime now = machine.steady_now();
    if (now >= end) {
      return false;
    }
    // The time-out may be moved meanwhile, so what woke us is looked at afresh.
    const SteadyTime::rep seen = deadline_.load();
    const SteadyTime wake = std::min(end, saturating_sum(now, time_left()));
    stopped_.wait_until(mutex_, wake, [this, seen] { return stop_.load() || deadline_.load() != seen; });
  }
  return true;
}

bool Attempt::extend(Duration duration) {
  {
    const MutexLock lock(mutex_);
    if (lost_.load()) {
      return false;
    }
    deadline_.store(saturating_sum(clock_.steady_now(), duration).time_since_epoch().count());
    if (watcher_ != nullptr) {
      watcher_->extended(duration);
    }
  }
  stopped_.notify_all();
  return true;
}

}  // namespace sluice::plugin
