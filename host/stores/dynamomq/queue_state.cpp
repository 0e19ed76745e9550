#include "host/stores/dynamomq/queue_state.hpp"

#include <utility>

namespace sluice::queue::dynamomq {

void UnresolvedClaims::remember(UnresolvedClaim claim) {
  const MutexLock lock(mutex_);
  if (claims_.size() == kMost) {
    claims_.pop_front();
  }
  claims_.push_back(std::move(claim));
}

std::vector<UnresolvedClaim> UnresolvedClaims::take(std::size_t count, bool suspects) {
  const MutexLock lock(mutex_);
  std::vector<UnresolvedClaim> taken;
  std::deque<UnresolvedClaim> left;
  bool alone = false;
  for (auto& claim : claims_) {
    const bool suspect = claim.candidate.suspect();
    const bool fits = taken.size() < count && !alone && (!suspect || (suspects && taken.empty()));
    alone = alone || (fits && suspect);
    if (fits) {
      taken.push_back(std::move(claim));
    } else {
      left.push_back(std::move(claim));
    }
  }
  claims_ = std::move(left);
  return taken;
}

}  // namespace sluice::queue::dynamomq
