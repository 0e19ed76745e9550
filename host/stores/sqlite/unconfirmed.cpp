#include "host/stores/sqlite/unconfirmed.hpp"

namespace sluice::queue::sqlite {

namespace {

// More than a host has in hand at one time. Beyond it the oldest are forgotten.
constexpr std::size_t kLimit = 100'000;

}  // namespace

void Unconfirmed::Keys::add(const Receipt& receipt) {
  const Key key{receipt.locator, receipt.version};
  if (set.insert(key).second) {
    order.push_back(key);
  }
  if (order.size() > kLimit) {
    set.erase(order.front());
    order.pop_front();
  }
}

void Unconfirmed::add_settled(std::span<const Completion> completions, std::span<const SettleResult> results) {
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < completions.size(); ++i) {
    if (results[i].status == SettleStatus::applied) {
      settled_.add(completions[i].receipt);
      any_ = true;
    }
  }
}

void Unconfirmed::add_extended(std::span<const Receipt> receipts, std::span<const ExtendResult> results) {
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    if (results[i].status == SettleStatus::applied) {
      extended_.add(receipts[i]);
      any_ = true;
    }
  }
}

bool Unconfirmed::settled(const Receipt& receipt) const {
  if (!any_) {
    return false;
  }
  const MutexLock lock(mutex_);
  return settled_.set.contains({receipt.locator, receipt.version});
}

Receipt Unconfirmed::current(Receipt receipt) const {
  if (any_) {
    const MutexLock lock(mutex_);
    while (extended_.set.contains({receipt.locator, receipt.version})) {
      ++receipt.version;
    }
  }
  return receipt;
}

}  // namespace sluice::queue::sqlite
