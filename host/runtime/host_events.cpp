#include "host/runtime/host_events.hpp"

#include <csignal>
#include <utility>

namespace sluice::runtime {

void HostEvents::signal(int number) {
  std::function<void()> hard_stop;
  {
    const MutexLock lock(mutex_);
    seen_ = false;
    if (number == SIGHUP) {
      reload_ = true;
    } else if (++terminations_ > 1) {
      hard_stop = hard_stop_;
    }
  }
  changed_.notify_all();
  if (hard_stop) {
    hard_stop();
  }
}

void HostEvents::on_hard_stop(std::function<void()> action) {
  const MutexLock lock(mutex_);
  hard_stop_ = std::move(action);
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
