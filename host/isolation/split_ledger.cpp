#include "host/isolation/split_ledger.hpp"

#include <utility>

#include "base/assert.hpp"
#include "host/isolation/ledger_format.hpp"

namespace sluice::isolation {

// Room for every slot there can be is a matter of addresses: memory is what is touched of it.
SplitLedger::SplitLedger(std::vector<std::unique_ptr<JobLedger>> ledgers) : ledgers_(std::move(ledgers)) {
  part_of_.reserve(format::kSlotsAtMost + std::size_t{1});
}

HeldSlot SplitLedger::hold(const queue::Delivery& delivery) noexcept {
  const std::uint16_t part = delivery.receipt.part;
  SLUICE_ASSERT(part < ledgers_.size());
  const HeldSlot slot = ledgers_[part]->hold(delivery);
  if (slot >= part_of_.size()) {
    part_of_.resize(slot + std::size_t{1});
  }
  part_of_[slot] = part;
  return slot;
}

void SplitLedger::renew(HeldSlot slot, const queue::Receipt& receipt) noexcept {
  ledgers_.front()->renew(slot, receipt);
}

// Whose slot it is does not matter to these, and `part_of_` belongs to the job's lock.

void SplitLedger::started(HeldSlot slot, std::string_view id) noexcept { ledgers_.front()->started(slot, id); }

void SplitLedger::ended(HeldSlot slot, bool finished) noexcept { ledgers_.front()->ended(slot, finished); }

void SplitLedger::committing(HeldSlot slot, Committing how) noexcept { ledgers_.front()->committing(slot, how); }

void SplitLedger::drop(HeldSlot slot) noexcept { ledgers_[slot == 0 ? 0 : part_of_[slot]]->drop(slot); }

std::unique_ptr<JobLedger> open_parts(HostLedger& ledger, const std::vector<LedgerJob>& parts,
                                      std::uint32_t unrecorded) {
  std::vector<std::unique_ptr<JobLedger>> opened;
  opened.reserve(parts.size());
  for (const LedgerJob& part : parts) {
    // The first is told of whatever is dropped without a slot.
    opened.push_back(ledger.open(part, opened.empty() ? unrecorded : 0));
  }
  if (opened.size() == 1) {
    return std::move(opened.front());
  }
  return std::make_unique<SplitLedger>(std::move(opened));
}

}  // namespace sluice::isolation
