#include "host/stores/outbox/bucket_share.hpp"

#include <algorithm>

namespace sluice::queue::outbox {
namespace {

// Fewer are not worth a request of their own.
constexpr std::size_t kLeastTries = 8;

}  // namespace

std::vector<std::uint32_t> BucketShare::shared_by(std::uint32_t members) {
  const std::uint32_t parts = std::max(members, 1U);
  target_ = (buckets_ + parts - 1) / parts;
  std::vector<std::uint32_t> surplus;
  while (held_.size() > target_) {
    const std::uint32_t last = *held_.rbegin();
    held_.erase(last);
    leaving_.insert(last);
    surplus.push_back(last);
  }
  return surplus;
}

std::vector<std::uint32_t> BucketShare::to_try() {
  std::vector<std::uint32_t> candidates;
  const std::size_t missing = target_ > held_.size() ? target_ - held_.size() : 0;
  const std::size_t wanted = missing == 0 ? 0 : std::max(missing, kLeastTries);
  while (tried_ < buckets_ && candidates.size() < wanted) {
    // What is leaving is locked by this member still, and would be had a second time.
    if (!held_.contains(next_) && !leaving_.contains(next_)) {
      candidates.push_back(next_);
    }
    next_ = (next_ + 1) % buckets_;
    ++tried_;
  }
  return candidates;
}

BucketShare::Got BucketShare::locked(std::span<const std::uint32_t> buckets) {
  Got got;
  for (const std::uint32_t bucket : buckets) {
    if (held_.size() < target_) {
      held_.insert(bucket);
      got.held.push_back(bucket);
    } else {
      got.surplus.push_back(bucket);
    }
  }
  return got;
}

std::vector<std::uint32_t> BucketShare::free_to_go(const std::function<bool(std::uint32_t)>& nothing_out) const {
  std::vector<std::uint32_t> free;
  std::copy_if(leaving_.begin(), leaving_.end(), std::back_inserter(free), nothing_out);
  return free;
}

void BucketShare::unlocked(std::span<const std::uint32_t> buckets) {
  for (const std::uint32_t bucket : buckets) {
    leaving_.erase(bucket);
  }
}

void BucketShare::lost_all() {
  held_.clear();
  leaving_.clear();
  target_ = 0;
}

}  // namespace sluice::queue::outbox
