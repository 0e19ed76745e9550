#include "host/stores/table/writer_memory.hpp"

#include <utility>

namespace sluice::queue::table {

void FailureMemory::note(const std::string& id, const Failure& failure) {
  std::vector<FailedAttempt> earlier = earlier_than_next(failure);
  const MutexLock lock(mutex_);
  if (earlier.empty()) {
    if (!by_id_.empty()) {
      by_id_.erase(id);
    }
  } else if (by_id_.size() < kCapacity || by_id_.contains(id)) {
    by_id_.insert_or_assign(id, std::move(earlier));
  }
}

std::vector<FailedAttempt> FailureMemory::earlier(const std::string& id) const {
  const MutexLock lock(mutex_);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? std::vector<FailedAttempt>() : found->second;
}

void FailureMemory::forget(const std::string& id) {
  const MutexLock lock(mutex_);
  if (!by_id_.empty()) {
    by_id_.erase(id);
  }
}

}  // namespace sluice::queue::table
