#include "host/isolation/host_ledger.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "host/isolation/ledger_mapping.hpp"

namespace sluice::isolation {
namespace {

using format::Slot;

/// A job's slots. `hold`, `renew` and `drop` are under its job's lock, so that the list of free ones is too.
class JobSlots final : public JobLedger {
 public:
  /// `job`: its entry; format::kJobs: it has none.
  JobSlots(std::shared_ptr<LedgerMapping> mapping, HandlerFacts facts, std::size_t job, std::uint32_t unrecorded)
      : mapping_(std::move(mapping)), facts_(std::move(facts)), job_(static_cast<std::uint16_t>(job)) {
    count_unrecorded(static_cast<std::int32_t>(unrecorded));
  }
  ~JobSlots() override;

  HeldSlot hold(const queue::Delivery& delivery) noexcept override;
  void renew(HeldSlot slot, const queue::Receipt& receipt) noexcept override;
  void started(HeldSlot slot, std::string_view id) noexcept override;
  void ended(HeldSlot slot, bool finished) noexcept override;
  void committing(HeldSlot slot, Committing how) noexcept override;
  void drop(HeldSlot slot) noexcept override;

 private:
  bool take_block() noexcept;
  void count_unrecorded(std::int32_t change) noexcept;
  Slot& at(HeldSlot slot) { return mapping_->slot(slot - 1); }

  // Fixed after construction.
  const std::shared_ptr<LedgerMapping> mapping_;
  const HandlerFacts facts_;
  const std::uint16_t job_;
  // Touched only under the job's lock.
  std::vector<HeldSlot> free_;
  std::vector<std::uint32_t> blocks_;
  /// Held without a slot. Below zero where another part of the same job counted what is dropped here.
  std::int32_t unrecorded_ = 0;
};

JobSlots::~JobSlots() {
  for (const std::uint32_t first : blocks_) {
    for (std::uint32_t i = 0; i < LedgerMapping::kBlock; ++i) {
      mapping_->slot(first + i).state.store(format::kFree);
    }
    mapping_->give_back_block(first);
  }
  count_unrecorded(-unrecorded_);
  if (job_ < format::kJobs) {
    mapping_->give_back_job(job_);
  }
}

void JobSlots::count_unrecorded(std::int32_t change) noexcept {
  unrecorded_ += change;
  mapping_->head().unrecorded.fetch_add(static_cast<std::uint32_t>(change), std::memory_order_relaxed);
}

bool JobSlots::take_block() noexcept {
  const std::uint32_t first = mapping_->take_block();
  if (first == format::kSlotsAtMost) {
    return false;
  }
  try {
    blocks_.push_back(first);
    free_.reserve(blocks_.size() * LedgerMapping::kBlock);
  } catch (const std::bad_alloc&) {
    return false;
  }
  for (std::uint32_t i = LedgerMapping::kBlock; i > 0; --i) {
    free_.push_back(first + i);
  }
  return true;
}

HeldSlot JobSlots::hold(const queue::Delivery& delivery) noexcept {
  const std::string& id = delivery.receipt.id;
  if (job_ == format::kJobs || id.size() > format::kIdLimit || (free_.empty() && !take_block())) {
    count_unrecorded(1);
    return 0;
  }
  const HeldSlot held = free_.back();
  free_.pop_back();
  Slot& slot = at(held);
  slot.job = job_;
  slot.suspect = delivery.suspect ? 1 : 0;
  slot.version = delivery.receipt.version;
  slot.locator = delivery.receipt.locator;
  slot.attempt = delivery.message.attempt;
  slot.id_size = static_cast<std::uint8_t>(id.size());
  std::memcpy(slot.id.data(), id.data(), id.size());
  slot.state.store(format::kHeld, std::memory_order_release);
  return held;
}

void JobSlots::renew(HeldSlot held, const queue::Receipt& receipt) noexcept {
  if (held != 0) {
    at(held).version = receipt.version;
    at(held).locator = receipt.locator;
  }
}

void JobSlots::started(HeldSlot held, std::string_view id) noexcept {
  if (held != 0) {
    at(held).state.store(format::kRunning, std::memory_order_release);
  }
  handler_begins({&facts_, id, held});
}

void JobSlots::ended(HeldSlot held, bool finished) noexcept {
  handler_returns();
  if (held == 0) {
    return;
  }
  std::uint32_t expected = format::kRunning;
  if (!at(held).state.compare_exchange_strong(expected, finished ? format::kFinished : format::kHeld,
                                              std::memory_order_acq_rel) &&
      expected == format::kGone) {
    at(held).state.store(format::kFree, std::memory_order_release);
  }
}

void JobSlots::committing(HeldSlot held, Committing how) noexcept {
  if (held != 0) {
    at(held).state.store(how == Committing::alone      ? format::kCommittingAlone
                         : how == Committing::together ? format::kCommitting
                                                       : format::kHeld,
                         std::memory_order_release);
  }
}

void JobSlots::drop(HeldSlot held) noexcept {
  if (held == 0) {
    count_unrecorded(-1);
    return;
  }
  std::uint32_t expected = format::kRunning;
  // Whoever lost the lease of a handler that does not return may not give its place to another message: the handler's
  // return, or its crash, would be taken for that one's. The place is lost with it.
  if (at(held).state.compare_exchange_strong(expected, format::kGone, std::memory_order_acq_rel)) {
    return;
  }
  at(held).state.store(format::kFree, std::memory_order_release);
  free_.push_back(held);
}

}  // namespace

HostLedger::HostLedger(std::shared_ptr<LedgerMapping> mapping) : mapping_(std::move(mapping)) {}
HostLedger::~HostLedger() = default;

Result<std::unique_ptr<HostLedger>> HostLedger::create(const std::string& folder, const LedgerOwner& owner,
                                                       const Clock& clock, LedgerStart start) {
  SLUICE_TRY(mapping, LedgerMapping::create(folder, owner, clock, start));
  return std::unique_ptr<HostLedger>(new HostLedger(std::move(*mapping)));
}

std::unique_ptr<JobLedger> HostLedger::open(LedgerJob job, std::uint32_t unrecorded) {
  const std::size_t index = mapping_->take_job();
  if (index < format::kJobs) {
    format::JobEntry& entry = mapping_->job(index);
    entry.dlq = job.address.half == queue::Half::dlq ? 1 : 0;
    entry.name.assign(job.facts.job);
    entry.queue.assign(job.address.queue);
  }
  return std::make_unique<JobSlots>(mapping_, std::move(job.facts), index, unrecorded);
}

void HostLedger::has_all_jobs() { mapping_->head().unrecorded.fetch_sub(1); }

bool HostLedger::is_whole() const { return mapping_->is_whole(); }

CrashRecord& HostLedger::crash_record() { return mapping_->crash(); }

}  // namespace sluice::isolation
