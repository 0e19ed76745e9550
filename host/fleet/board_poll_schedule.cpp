#include "host/fleet/board_poll_schedule.hpp"

#include <cmath>

#include "host/fleet/fleet.hpp"

namespace sluice::fleet {

namespace {

constexpr double kBytesPerUnit = 1'024;
// What a notice's item takes beside its text: names, key and time.
constexpr double kItemFrame = 160;

}  // namespace

BoardPollSchedule::BoardPollSchedule(const queue::BoardTraits& traits, SteadyTime now)
    : tells_(traits.tells),
      billed_(traits.billed),
      idle_interval_(billed_ ? kTellEveryBilled : kTellEvery),
      sweep_at_(now + kFirstSweep) {}

void BoardPollSchedule::size(std::size_t bytes, std::size_t boards) {
  if (!billed_) {
    return;
  }
  const double units = std::ceil((static_cast<double>(bytes) + kItemFrame) / kBytesPerUnit);
  const auto affordable = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(units * static_cast<double>(boards) / kIdleWriteUnits));
  idle_interval_ = std::clamp<Duration>(affordable, kTellEveryBilled, kTellAtLeastEvery);
}

Duration BoardPollSchedule::interval(SteadyTime now) const {
  return watched(now) ? (billed_ ? kTellWatchedBilled : kTellWatched) : idle_interval_;
}

BoardPollSchedule::Order BoardPollSchedule::next(SteadyTime now) const {
  const bool at_once = tell_at_ == SteadyTime::min();
  const SteadyTime tell_at = at_once ? tell_at_ : std::min(tell_at_, told_at_ + interval(now));
  Order order{Duty::none, SteadyTime::max()};
  for (const auto& [duty, due] :
       {std::pair(Duty::look, look_at_), std::pair(Duty::tell, tell_at), std::pair(Duty::sweep, sweep_at_)}) {
    const SteadyTime at = std::max(due, retries_[static_cast<std::size_t>(duty)].not_before);
    if (now >= at) {
      return {duty, {}};
    }
    order.wake = std::min(order.wake, at);
  }
  return order;
}

void BoardPollSchedule::done(Duty duty, SteadyTime now) {
  retry(duty) = {};
  switch (duty) {
    case Duty::look:
      look_at_ = now + (tells_ ? kLookAllTheSame : kLookEvery);
      break;
    case Duty::tell:
      told_at_ = now;
      // As it was announced, though nobody may look any more by then.
      tell_at_ = now + interval(now);
      break;
    case Duty::sweep:
      sweep_at_ = now + kSweepEvery;
      break;
    case Duty::none:
      break;
  }
}

void BoardPollSchedule::failed(Duty duty, SteadyTime now) {
  // Doubled each time, up to the last.
  Retry& again = retry(duty);
  const int doublings = std::min(again.failures++, 6);
  again.not_before = now + std::min<Duration>(kLastRetry, kFirstRetry * (1 << doublings));
}

bool BoardPollSchedule::failing() const {
  return std::any_of(retries_.begin(), retries_.end(), [](const Retry& retry) { return retry.failures > 0; });
}

std::vector<queue::Notice> Sweeper::due(const std::vector<queue::Notice>& hosts, WallTime board_now, SteadyTime now) {
  std::vector<queue::Notice> old;
  std::map<std::string, Sight> seen;
  for (const queue::Notice& notice : hosts) {
    if (notice.key == own_) {
      continue;
    }
    const auto before = seen_.find(notice.key);
    const bool same = before != seen_.end() && before->second.version == notice.version;
    const Sight sight = same ? before->second : Sight{notice.version, now};
    if (board_now - notice.posted_at > kKeepSilent || now - sight.since > kKeepSilent) {
      old.push_back(notice);
    } else {
      seen.emplace(notice.key, sight);
    }
  }
  seen_ = std::move(seen);
  return old;
}

}  // namespace sluice::fleet
