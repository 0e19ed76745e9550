#include "host/stores/dynamomq/doubtful_writes.hpp"

namespace sluice::queue::dynamomq {

void DoubtfulWrites::remember(UnresolvedClaim claim) {
  const MutexLock lock(mutex_);
  if (claims_.size() == kMaxClaims) {
    claims_.pop_front();
  }
  claims_.push_back(std::move(claim));
}

std::vector<UnresolvedClaim> DoubtfulWrites::take_claims(std::size_t count, bool suspects) {
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

void DoubtfulWrites::remember(const Receipt& receipt, DoubtfulWrite write) {
  const MutexLock lock(mutex_);
  Key key(receipt.id, receipt.version);
  writes_[key].push_back(std::move(write));
  order_.push_back(std::move(key));
  if (order_.size() > kMaxReceipts) {
    writes_.erase(order_.front());
    order_.pop_front();
  }
}

std::vector<DoubtfulWrite> DoubtfulWrites::about(const Receipt& receipt) const {
  const MutexLock lock(mutex_);
  if (writes_.empty()) {
    return {};
  }
  const auto found = writes_.find({receipt.id, receipt.version});
  return found == writes_.end() ? std::vector<DoubtfulWrite>() : found->second;
}

void DoubtfulWrites::clear(const Receipt& receipt) {
  const MutexLock lock(mutex_);
  if (!writes_.empty()) {
    writes_.erase({receipt.id, receipt.version});
  }
}

}  // namespace sluice::queue::dynamomq
