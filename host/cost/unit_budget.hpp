#pragma once

#include <algorithm>
#include <cstddef>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/cost/spent.hpp"

namespace sluice::cost {

/// Keeps what this host spends on one queue below a number of units a second: a token bucket that holds a second's
/// worth. What is taken out is what DynamoDB's answers reported, never a guess beforehand: the bucket may go below
/// nothing, and the debt is paid back by waiting.
///
/// Settlements go before claims: those begin as soon as there is no debt, claims only while a quarter of the bucket is
/// left. Extensions of leases do not wait and are not asked about. Thread-safe; is told the time and waits for nothing.
class UnitBudget {
 public:
  /// Units a second; 0: no limit.
  struct Limits {
    double write_units = 0;
    double read_units = 0;
  };
  UnitBudget(const Limits& limits, SteadyTime now);

  /// This was spent.
  void charge(const Spent& spent, SteadyTime now);

  /// When a claim may begin; at most `now`: at once. And for how many messages, by what those before have cost.
  SteadyTime claim_at(SteadyTime now) { return wait(kClaimShare, now); }
  std::size_t claim_most(SteadyTime now) {
    const MutexLock lock(mutex_);
    return most(claims_, now);
  }
  /// The same of settlements.
  SteadyTime settle_at(SteadyTime now) { return wait(0, now); }
  std::size_t settle_most(SteadyTime now) {
    const MutexLock lock(mutex_);
    return most(settlements_, now);
  }
  /// What a claim or a settlement of so many messages has cost.
  void claimed(std::size_t messages, const Spent& spent) {
    const MutexLock lock(mutex_);
    claims_.learn(messages, spent);
  }
  void settled(std::size_t messages, const Spent& spent) {
    const MutexLock lock(mutex_);
    settlements_.learn(messages, spent);
  }

  const Limits& limits() const { return limits_; }
  /// Somebody waits for it at this moment.
  bool holds(SteadyTime now) const {
    const MutexLock lock(mutex_);
    return held_until_ > now;
  }
  /// How long somebody has waited for it, all in all.
  Duration waited(SteadyTime now) const {
    const MutexLock lock(mutex_);
    return waited_ - std::max(held_until_ - now, Duration::zero());
  }

 private:
  /// Of a full bucket, what must be there for a claim.
  static constexpr double kClaimShare = 0.25;

  class Bucket {
   public:
    Bucket(double rate, SteadyTime now);
    void take(double units, SteadyTime now);
    /// When `share` of a full bucket is there.
    SteadyTime ready_at(double share, SteadyTime now) const;
    /// How many messages it has room for; 1 at least.
    double room(double per_message, SteadyTime now) const;

   private:
    double tokens(SteadyTime now) const;

    // Fixed after construction.
    double rate_;
    double capacity_;

    double tokens_;
    SteadyTime filled_at_;
  };
  /// What a message has cost of late.
  struct PerMessage {
    Spent mean;
    bool known = false;
    void learn(std::size_t messages, const Spent& spent);
  };

  SteadyTime wait(double share, SteadyTime now);
  std::size_t most(const PerMessage& cost, SteadyTime now) const SLUICE_REQUIRES(mutex_);

  // Fixed after construction.
  const Limits limits_;

  mutable Mutex mutex_;
  Bucket writes_ SLUICE_GUARDED_BY(mutex_);
  Bucket reads_ SLUICE_GUARDED_BY(mutex_);
  PerMessage claims_ SLUICE_GUARDED_BY(mutex_);
  PerMessage settlements_ SLUICE_GUARDED_BY(mutex_);
  SteadyTime held_until_ SLUICE_GUARDED_BY(mutex_){};
  Duration waited_ SLUICE_GUARDED_BY(mutex_){};
};

}  // namespace sluice::cost
