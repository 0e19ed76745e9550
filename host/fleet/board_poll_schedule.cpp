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
    : tells_(traits.tells), billed_(traits.billed), idle_interval_(billed_ ? kTellEveryBilled : kTellEvery) {
  plan(Duty::sweep).due = now + kFirstSweep;
}

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
  Order order{Duty::none, SteadyTime::max()};
  for (const Duty duty : {Duty::look, Duty::tell, Duty::sweep}) {
    const Plan& plan = plans_.at(static_cast<std::size_t>(duty));
    const SteadyTime due = duty == Duty::tell ? std::min(plan.due, told_at_ + interval(now)) : plan.due;
    const SteadyTime at = std::max(due, plan.not_before);
    if (now >= at) {
      return {duty, {}};
    }
    order.wake = std::min(order.wake, at);
  }
  return order;
}

void BoardPollSchedule::done(Duty duty, SteadyTime now) {
  // The next record comes as it was announced, though nobody may look any more by then.
  const Duration span = duty == Duty::look   ? (tells_ ? kLookAllTheSame : kLookEvery)
                        : duty == Duty::tell ? interval(now)
                                             : kSweepEvery;
  plan(duty) = {.due = now + span};
  told_at_ = duty == Duty::tell ? now : told_at_;
}

void BoardPollSchedule::failed(Duty duty, SteadyTime now) {
  // Doubled each time, up to the last.
  const int doublings = std::min(plan(duty).failures++, 6);
  plan(duty).not_before = now + std::min<Duration>(kLastRetry, kFirstRetry * (1 << doublings));
}

bool BoardPollSchedule::failing() const {
  return std::any_of(plans_.begin(), plans_.end(), [](const Plan& plan) { return plan.failures > 0; });
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
