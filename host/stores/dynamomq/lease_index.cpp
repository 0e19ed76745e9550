#include "host/stores/dynamomq/lease_index.hpp"

namespace sluice::queue::dynamomq {

bool LeaseIndex::put(Candidate record) {
  erase(record.id);
  if (records_.size() >= kCapacity) {
    return false;
  }
  const std::string id = record.id;
  const auto place = by_due_.emplace(record.due_at(), id);
  records_.emplace(id, Entry{std::move(record), place});
  return true;
}

void LeaseIndex::erase(const std::string& id) {
  const auto found = records_.find(id);
  if (found != records_.end()) {
    by_due_.erase(found->second.place);
    records_.erase(found);
  }
}

const Candidate* LeaseIndex::find(const std::string& id) const {
  const auto found = records_.find(id);
  return found == records_.end() ? nullptr : &found->second.record;
}

void LeaseIndex::clear() {
  records_.clear();
  by_due_.clear();
}

std::vector<Candidate> LeaseIndex::take_due(WallTime now, std::size_t count) {
  std::vector<Candidate> due;
  while (due.size() < count && !by_due_.empty()) {
    const auto found = records_.find(by_due_.begin()->second);
    if (!found->second.record.due(now)) {
      break;
    }
    due.push_back(std::move(found->second.record));
    records_.erase(found);
    by_due_.erase(by_due_.begin());
  }
  return due;
}

}  // namespace sluice::queue::dynamomq
