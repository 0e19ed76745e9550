#include "host/plugin/attempt.hpp"

#include <algorithm>

namespace sluice::plugin {

namespace {

constexpr SteadyTime kNever = SteadyTime::max();

SteadyTime saturating_sum(SteadyTime time, Duration span) {
  const Duration positive = std::max(span, Duration::zero());
  return positive >= kNever - time ? kNever : time + positive;
}

}  // namespace

void Attempt::arm(SteadyTime deadline) {
  first_result_.reset();
  deadline_.store(deadline.time_since_epoch().count());
  end_.store(kNever.time_since_epoch().count());
  stop_.store(false);
  lost_.store(false);
}

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

void Attempt::lose_lease() {
  lost_.store(true);
  request_stop(clock_.steady_now());
}

SteadyTime Attempt::deadline() const { return SteadyTime(Duration(deadline_.load())); }

SteadyTime Attempt::drain_end() const { return SteadyTime(Duration(end_.load())); }

bool Attempt::timed_out() const {
  const SteadyTime at = deadline();
  return at != kNever && clock_.steady_now() >= at;
}

bool Attempt::stop_requested() const { return stop_.load() || timed_out(); }

Duration Attempt::time_left() const {
  const SteadyTime at = std::min(deadline(), drain_end());
  return at == kNever ? Duration::max() : std::max(Duration::zero(), Duration(at - clock_.steady_now()));
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

void Attempt::watch(AttemptWatcher* watcher) {
  const MutexLock lock(mutex_);
  watcher_ = watcher;
  if (watcher != nullptr && stop_.load()) {
    watcher->stop_requested(drain_end(), lost_.load());
  }
}

}  // namespace sluice::plugin
