#include "tests/support/simulated_fleet/timeline.hpp"

#include <utility>

namespace sluice::test::sim {

SteadyTime SharedClock::machine_time(SteadyTime time) const {
  if (under_way_ > now_) {
    now_ = under_way_;
  } else if (time < now_ + std::chrono::hours(1)) {
    now_ = std::max(now_, time);
  }
  return SteadyTime::min();
}

void Timeline::at(SteadyTime time, std::function<void()> act) { events_.push({time, ++made_, std::move(act)}); }

void Timeline::run_until(SteadyTime end) {
  while (!events_.empty() && events_.top().at <= end) {
    const Event event = events_.top();
    events_.pop();
    now_ = std::max(now_, event.at);
    clock_.set(now_);
    event.act();
  }
  now_ = end;
  clock_.set(end);
}

}  // namespace sluice::test::sim
