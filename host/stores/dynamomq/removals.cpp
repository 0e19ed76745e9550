#include "host/stores/dynamomq/removals.hpp"

namespace sluice::queue::dynamomq {

void Removals::add(const Candidate& record, SteadyTime now) {
  purge(now);
  removals_.insert_or_assign(record.id, Removal{now, record.sort_key, record.nonce});
  order_.push_back(record.id);
}

bool Removals::shows_removed(const Candidate& record, SteadyTime now) const {
  const auto found = removals_.find(record.id);
  return found != removals_.end() && now - found->second.at <= kIndexDelay &&
         found->second.sort_key == record.sort_key && found->second.nonce == record.nonce;
}

void Removals::purge(SteadyTime now) {
  while (!order_.empty()) {
    const auto oldest = removals_.find(order_.front());
    if (oldest != removals_.end() && now - oldest->second.at <= kIndexDelay && order_.size() < kCapacity) {
      return;
    }
    if (oldest != removals_.end()) {
      removals_.erase(oldest);
    }
    order_.pop_front();
  }
}

}  // namespace sluice::queue::dynamomq
