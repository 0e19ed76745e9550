#include "host/queue/wake/announcer.hpp"

#include <algorithm>
#include <utility>

#include "host/queue/wake/announcement.hpp"

namespace sluice::queue::wake {

void Announcer::queues(std::vector<std::string> queues) {
  if (queues == queues_) {
    return;
  }
  queues_ = std::move(queues);
  next_ = SteadyTime::min();
}

void Announcer::announced(double write_units, SteadyTime now) {
  stands_ = true;
  retry_ = kFirstRetry;
  const std::chrono::duration<double> affordable(write_units / kWriteUnits);
  // What was announced says when the next one comes; a longer interval counts from that one on.
  next_ = now + interval_;
  interval_ = std::clamp(std::chrono::duration_cast<Duration>(affordable), kEvery, kLongestInterval);
}

void Announcer::failed(SteadyTime now) {
  // It may have been written all the same.
  stands_ = true;
  next_ = now + retry_;
  retry_ = std::min(kLastRetry, retry_ * 2);
}

}  // namespace sluice::queue::wake
