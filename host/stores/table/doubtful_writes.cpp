#include "host/stores/table/doubtful_writes.hpp"

namespace sluice::queue::table {

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

}  // namespace sluice::queue::table
