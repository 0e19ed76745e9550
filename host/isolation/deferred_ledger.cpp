#include "host/isolation/deferred_ledger.hpp"

#include "host/isolation/split_ledger.hpp"

namespace sluice::isolation {

std::uint32_t DeferredLedger::attach(HostLedger& ledger) {
  const MutexLock lock(mutex_);
  ledger_ = open_parts(ledger, parts_, unrecorded_);
  live_.store(ledger_.get(), std::memory_order_release);
  return unrecorded_;
}

HeldSlot DeferredLedger::hold(const queue::Delivery& delivery) noexcept {
  if (JobLedger* const ledger = live()) {
    return ledger->hold(delivery);
  }
  // The count goes over to the ledger as one, so that it is exact whenever that comes.
  const MutexLock lock(mutex_);
  if (ledger_) {
    return ledger_->hold(delivery);
  }
  ++unrecorded_;
  return 0;
}

void DeferredLedger::renew(HeldSlot slot, const queue::Receipt& receipt) noexcept {
  if (JobLedger* const ledger = live()) {
    ledger->renew(slot, receipt);
  }
}

void DeferredLedger::started(HeldSlot slot, std::string_view id) noexcept {
  if (JobLedger* const ledger = live()) {
    ledger->started(slot, id);
  } else {
    // The line about a crash can name it all the same.
    handler_begins({&parts_.front().facts, id, 0});
  }
}

void DeferredLedger::ended(HeldSlot slot, bool finished) noexcept {
  if (JobLedger* const ledger = live()) {
    ledger->ended(slot, finished);
  } else {
    handler_returns();
  }
}

void DeferredLedger::committing(HeldSlot slot, Committing how) noexcept {
  if (JobLedger* const ledger = live()) {
    ledger->committing(slot, how);
  }
}

void DeferredLedger::drop(HeldSlot slot) noexcept {
  if (JobLedger* const ledger = live()) {
    ledger->drop(slot);
    return;
  }
  const MutexLock lock(mutex_);
  if (ledger_) {
    ledger_->drop(slot);
  } else {
    --unrecorded_;
  }
}

}  // namespace sluice::isolation
