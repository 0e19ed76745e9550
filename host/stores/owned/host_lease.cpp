#include "host/stores/owned/host_lease.hpp"

#include <algorithm>
#include <utility>

#include "base/guard.hpp"

namespace sluice::queue::owned {
namespace {

// Rounded up, so that a heartbeat is seldom written before its time; by no more than an eighth where it is much.
InFlightBound rounded(std::uint64_t count) {
  constexpr std::uint32_t kMuch = 256;
  std::uint64_t much = HostLease::kLeastBound;
  while (much < count && much < kMuch) {
    much *= 2;
  }
  if (much < count) {
    much = (count + count / 8 + kMuch / 4 - 1) / (kMuch / 4) * (kMuch / 4);
  }
  return static_cast<InFlightBound>(std::min<std::uint64_t>(much, kUnbounded));
}

}  // namespace

HostLease::HostLease(Duration lease, std::string where, Remarks& remarks, const Clock& clock)
    : where_(std::move(where)), remarks_(remarks), clock_(clock), lease_(lease, clock) {}

bool HostLease::check() {
  const auto left = lease_.left();
  if (!left || *left > Duration::zero()) {
    return !lost_;
  }
  if (*left + (lease_.ahead() - ahead_at_beat_) > Duration::zero()) {
    remarks_.say("the clock of this machine has jumped ahead, or the machine has slept: what this host held of " +
                 where_ + " counts as lost and is taken anew");
  } else {
    remarks_.say("no heartbeat could be written to " + where_ +
                 " for a whole lease: what this host held of it is lost");
  }
  lease_.gone();
  lost_ = true;
  return false;
}

bool HostLease::may_start() {
  const MutexLock lock(mutex_);
  if (!SLUICE_GUARD(leased_two_thirds)) {
    return true;
  }
  return check() && lease_.may_start();
}

bool HostLease::holds() {
  const MutexLock lock(mutex_);
  return check() && lease_.holds();
}

InFlightBound HostLease::announced() const {
  const MutexLock lock(mutex_);
  return announced_;
}

SteadyTime HostLease::holds_until() {
  const MutexLock lock(mutex_);
  const auto left = check() ? lease_.left() : std::nullopt;
  return left > Duration::zero() ? clock_.steady_now() + *left : SteadyTime::min();
}

bool HostLease::lost() {
  const MutexLock lock(mutex_);
  return !check();
}

void HostLease::told_lost(bool owned) {
  const MutexLock lock(mutex_);
  lost_ = false;
  if (owned) {
    needed_ = std::max(needed_, announced_);  // what is lost may still be at work
    needed_since_ = clock_.steady_now();
  }
}

void HostLease::gone() {
  const MutexLock lock(mutex_);
  lease_.gone();
}

SteadyTime HostLease::now() {
  const MutexLock lock(mutex_);
  return lease_.now();
}

HostLease::Beat HostLease::begin(bool early, const std::function<InFlightBound()>& reached) {
  Beat beat;
  {
    const MutexLock lock(mutex_);
    beat.began = lease_.now();
    beat.ahead = lease_.ahead();
    const SteadyTime now = clock_.steady_now();
    if (now >= needed_since_ + kBoundKept) {
      needed_before_ = std::exchange(needed_, 0);
      needed_since_ = now;
    }
    beat.bound = rounded(std::max(needed_, needed_before_));
    if (early) {
      // What goes out next may need it: only a heartbeat in its time takes it back.
      beat.bound = std::max(beat.bound, announced_);
    }
    announced_ = std::min(announced_, beat.bound);
  }
  const InFlightBound bound = reached();
  const MutexLock lock(mutex_);
  needed_ = std::max(needed_, bound);
  beat.bound = std::max(beat.bound, rounded(bound));
  return beat;
}

bool HostLease::renewed(const Beat& beat) {
  const MutexLock lock(mutex_);
  const bool held = lease_.renewed(beat.began);
  lost_ = lost_ || !held;
  ahead_at_beat_ = beat.ahead;
  announced_ = beat.bound;
  return held;
}

bool HostLease::needs(InFlightBound bound) {
  const MutexLock lock(mutex_);
  needed_ = std::max(needed_, bound);
  return announced_ >= bound;
}

}  // namespace sluice::queue::owned
