#include "host/runtime/steering_rule.hpp"

#include <utility>

namespace sluice::runtime {

void SteeringRule::set(Steer steer) {
  const MutexLock lock(mutex_);
  steer_ = std::move(steer);
  ++said_;
}

void SteeringRule::apply(const std::vector<std::shared_ptr<work::Job>>& jobs) const {
  std::uint64_t applied = 0;
  while (true) {
    Steer steer;
    {
      const MutexLock lock(mutex_);
      // Another thread may say something else while this one is at it.
      if (applied == said_) {
        return;
      }
      applied = said_;
      steer = steer_;
    }
    for (const std::shared_ptr<work::Job>& job : jobs) {
      job->steer(steer(job->config()));
    }
  }
}

}  // namespace sluice::runtime
