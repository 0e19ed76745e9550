#include "host/cost/unit_budget.hpp"

#include <algorithm>
#include <cmath>

namespace sluice::cost {
namespace {

// So many are claimed or settled while nobody knows yet what a message costs.
constexpr std::size_t kFirstBatch = 10;
constexpr double kMostMessages = 1e6;
// The weight of what is older in a mean.
constexpr double kOld = 0.8;

Duration seconds(double count) {
  return std::chrono::ceil<Duration>(std::chrono::duration<double>(std::min(count, 1e6)));
}

}  // namespace

UnitBudget::Bucket::Bucket(double rate, SteadyTime now)
    : rate_(rate), capacity_(std::max(rate, 1.0)), tokens_(capacity_), filled_at_(now) {}

double UnitBudget::Bucket::tokens(SteadyTime now) const {
  const double passed = std::chrono::duration<double>(std::max(now - filled_at_, Duration::zero())).count();
  return std::min(capacity_, tokens_ + passed * rate_);
}

void UnitBudget::Bucket::take(double units, SteadyTime now) {
  tokens_ = tokens(now) - units;
  filled_at_ = std::max(now, filled_at_);
}

SteadyTime UnitBudget::Bucket::ready_at(double share, SteadyTime now) const {
  const double missing = rate_ > 0 ? share * capacity_ - tokens(now) : 0;
  return missing > 0 ? now + seconds(missing / rate_) : now;
}

double UnitBudget::Bucket::room(double per_message, SteadyTime now) const {
  const double most = rate_ > 0 && per_message > 0 ? tokens(now) / per_message : kMostMessages;
  return std::clamp(std::floor(most), 1.0, kMostMessages);
}

void UnitBudget::PerMessage::learn(std::size_t messages, const Spent& spent) {
  if (messages == 0) {
    return;
  }
  Spent next = spent * (1 / static_cast<double>(messages));
  if (known) {
    next = mean * kOld;
    next += spent * ((1 - kOld) / static_cast<double>(messages));
  }
  mean = next;
  known = true;
}

UnitBudget::UnitBudget(const Limits& limits, SteadyTime now)
    : limits_(limits), writes_(limits.write_units, now), reads_(limits.read_units, now) {}

void UnitBudget::charge(const Spent& spent, SteadyTime now) {
  const MutexLock lock(mutex_);
  writes_.take(spent.write_units, now);
  reads_.take(spent.read_units, now);
}

SteadyTime UnitBudget::wait(double share, SteadyTime now) {
  const MutexLock lock(mutex_);
  const SteadyTime at = std::max(writes_.ready_at(share, now), reads_.ready_at(share, now));
  if (at > now) {
    waited_ += std::max(at - std::max(now, held_until_), Duration::zero());
    held_until_ = std::max(held_until_, at);
  }
  return at;
}

std::size_t UnitBudget::most(const PerMessage& cost, SteadyTime now) const {
  if (!cost.known) {
    return kFirstBatch;
  }
  return static_cast<std::size_t>(
      std::min(writes_.room(cost.mean.write_units, now), reads_.room(cost.mean.read_units, now)));
}

}  // namespace sluice::cost
