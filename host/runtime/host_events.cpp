#include "host/runtime/host_events.hpp"

#include <csignal>
#include <utility>

namespace sluice::runtime {

void HostEvents::signal(int number) {
  if (number != SIGHUP) {
    terminate(Repeat::yes);
    return;
  }
  {
    const MutexLock lock(mutex_);
    seen_ = false;
    reload_ = true;
  }
  changed_.notify_all();
}

bool HostEvents::ask_drain() { return terminate(Repeat::no); }

bool HostEvents::terminate(Repeat repeat) {
  std::function<void(int)> action;
  int nth = 0;
  {
    const MutexLock lock(mutex_);
    if (repeat == Repeat::no && terminations_ > 0) {
      return false;
    }
    seen_ = false;
    nth = ++terminations_;
    action = action_;
    ++acting_;
  }
  // First of all: it bounds the end, and whoever waits below may hang.
  if (action) {
    action(nth);
  }
  {
    const MutexLock lock(mutex_);
    --acting_;
  }
  changed_.notify_all();
  return true;
}

void HostEvents::on_termination(std::function<void(int nth)> action) {
  const MutexLock lock(mutex_);
  changed_.wait_until(mutex_, SteadyTime::max(), [this]() SLUICE_NO_TSA { return acting_ == 0; });
  action_ = std::move(action);
}

void HostEvents::wake() {
  {
    const MutexLock lock(mutex_);
    seen_ = false;
  }
  changed_.notify_all();
}

void HostEvents::wait_until(SteadyTime time) {
  const MutexLock lock(mutex_);
  changed_.wait_until(mutex_, time, [this]() SLUICE_NO_TSA { return !seen_; });
  seen_ = true;
}

bool HostEvents::terminating() const {
  const MutexLock lock(mutex_);
  return terminations_ > 0;
}

bool HostEvents::hard_stop_requested() const {
  const MutexLock lock(mutex_);
  return terminations_ > 1;
}

bool HostEvents::take_reload() {
  const MutexLock lock(mutex_);
  return std::exchange(reload_, false);
}

}  // namespace sluice::runtime
