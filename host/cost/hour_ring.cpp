#include "host/cost/hour_ring.hpp"

namespace sluice::cost {
namespace {

std::int64_t minute_of(SteadyTime time) {
  return std::chrono::floor<std::chrono::minutes>(time.time_since_epoch()).count();
}

}  // namespace

void HourRing::add(const Usage& usage, SteadyTime now) {
  const std::int64_t number = minute_of(now);
  Minute& minute = minutes_[static_cast<std::size_t>(number) % kMinutes];
  if (minute.number != number) {
    minute = {number, {}};
  }
  minute.usage += usage;
}

Usage HourRing::sum(SteadyTime now) const {
  const std::int64_t last = minute_of(now);
  Usage sum;
  for (const Minute& minute : minutes_) {
    if (minute.number >= 0 && minute.number <= last && minute.number > last - static_cast<std::int64_t>(kMinutes)) {
      sum += minute.usage;
    }
  }
  return sum;
}

}  // namespace sluice::cost
