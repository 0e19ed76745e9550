#include "host/stores/leased/leased_source.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace sluice::queue::leased {

void LeasedSource::start(SourceEvents events) {
  auto subscription = doorbell_.subscribe(half_.address(), [this, ready = events.on_ready] {
    half_.rung();
    if (ready) {
      ready();
    }
  });
  const std::uint32_t number = table_.start(half_, std::move(events));
  const MutexLock lock(mutex_);
  SLUICE_ASSERT(!started_);
  started_ = true;
  number_ = number;
  std::swap(subscription_, subscription);
}

void LeasedSource::stop() {
  Doorbell::Subscription ended;
  std::uint32_t number = 0;
  {
    const MutexLock lock(mutex_);
    if (!started_ || stopped_) {
      return;
    }
    stopped_ = true;
    number = number_;
    std::swap(subscription_, ended);
  }
  table_.stop(half_, number);
}

Result<Claimed> LeasedSource::claim(const ClaimRequest& request, Deadline deadline) {
  std::uint32_t number = 0;
  {
    const MutexLock lock(mutex_);
    if (stopped_) {
      return Claimed{};
    }
    number = started_ ? number_ : 0;
  }
  if (number == 0) {
    return borrower_->claim(request, deadline);
  }
  table_.tend(deadline);
  auto claimed = half_.claim(number, request, deadline);
  if (const auto due = table_.due_at(); claimed && due && claimed->deliveries.size() < request.max) {
    const Duration wait = std::max(Duration::zero(), Duration(*due - clock_.steady_now()));
    claimed->next_due = std::min(claimed->next_due.value_or(wait), wait);
  }
  return claimed;
}

// What this process was handed by its own half is settled there; everything else by what its record says.
std::vector<SettleResult> LeasedSource::settle(std::span<const Completion> completions, Deadline deadline) {
  table_.tend(deadline);
  std::vector<Completion> own;
  std::vector<Completion> others;
  std::vector<bool> is_own;
  for (const Completion& completion : completions) {
    is_own.push_back(half_.knows(completion.receipt));
    (is_own.back() ? own : others).push_back(completion);
  }
  auto own_results = own.empty() ? std::vector<SettleResult>() : half_.settle(own, deadline);
  auto other_results = others.empty() ? std::vector<SettleResult>() : borrower_->settle(others, deadline);
  std::vector<SettleResult> results;
  results.reserve(completions.size());
  auto from_own = own_results.begin();
  auto from_others = other_results.begin();
  for (const bool mine : is_own) {
    results.push_back(std::move(mine ? *from_own++ : *from_others++));
  }
  doorbell_.ring_settled(half_.address(), completions, results);
  table_.tend(deadline);  // a shard may be handed over now
  return results;
}

bool LeasedSource::holds(std::uint32_t /*part*/) {
  {
    const MutexLock lock(mutex_);
    if (!started_) {
      return true;  // it has borrowed them
    }
  }
  return half_.holds();
}

std::vector<ExtendResult> LeasedSource::extend(std::span<const Receipt> receipts, Duration visibility,
                                               Deadline deadline) {
  std::vector<Receipt> own;
  std::vector<Receipt> others;
  std::vector<bool> is_own;
  for (const Receipt& receipt : receipts) {
    is_own.push_back(half_.knows(receipt));
    (is_own.back() ? own : others).push_back(receipt);
  }
  auto own_results = own.empty() ? std::vector<ExtendResult>() : half_.extend(own);
  auto other_results = others.empty() ? std::vector<ExtendResult>() : borrower_->extend(others, visibility, deadline);
  std::vector<ExtendResult> results;
  results.reserve(receipts.size());
  auto from_own = own_results.begin();
  auto from_others = other_results.begin();
  for (const bool mine : is_own) {
    results.push_back(std::move(mine ? *from_own++ : *from_others++));
  }
  return results;
}

}  // namespace sluice::queue::leased
