#include "host/isolation/split_ledger.hpp"

#include <new>

namespace sluice::isolation {

HeldSlot SplitLedger::hold(const queue::Delivery& delivery) noexcept {
  const std::uint16_t part = delivery.receipt.part;
  if (part >= ledgers_.size()) {
    return 0;
  }
  const HeldSlot slot = ledgers_[part]->hold(delivery);
  if (slot >= part_of_.size()) {
    try {
      part_of_.resize(slot + std::size_t{1});
    } catch (const std::bad_alloc&) {
      ledgers_[part]->drop(slot);
      return 0;
    }
  }
  part_of_[slot] = part;
  return slot;
}

void SplitLedger::renew(HeldSlot slot, const queue::Receipt& receipt) noexcept {
  ledgers_.front()->renew(slot, receipt);
}

// Whose slot it is does not matter to these, and `part_of_` belongs to the job's lock.

void SplitLedger::started(HeldSlot slot) noexcept { ledgers_.front()->started(slot); }

void SplitLedger::ended(HeldSlot slot) noexcept { ledgers_.front()->ended(slot); }

void SplitLedger::drop(HeldSlot slot) noexcept { ledgers_[slot == 0 ? 0 : part_of_[slot]]->drop(slot); }

}  // namespace sluice::isolation
