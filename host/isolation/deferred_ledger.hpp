#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "host/isolation/crash_ledger.hpp"
#include "host/isolation/host_ledger.hpp"

namespace sluice::isolation {

/// A job's part of a crash ledger that is not there yet: counts what is held until it is, and is that part from then
/// on. What was held before stays without a slot until it is dropped. As JobLedger otherwise; `attach` by
/// any thread.
class DeferredLedger final : public JobLedger {
 public:
  /// One for each of the job's queues.
  explicit DeferredLedger(std::vector<LedgerJob> parts) : parts_(std::move(parts)) {}

  /// The ledger is there. Once; how many messages are held at this moment.
  std::uint32_t attach(HostLedger& ledger) SLUICE_EXCLUDES(mutex_);

  HeldSlot hold(const queue::Delivery& delivery) noexcept override;
  void renew(HeldSlot slot, const queue::Receipt& receipt) noexcept override;
  void started(HeldSlot slot, std::string_view id) noexcept override;
  void ended(HeldSlot slot, bool finished) noexcept override;
  void committing(HeldSlot slot, Committing how) noexcept override;
  void drop(HeldSlot slot) noexcept override;

 private:
  JobLedger* live() const noexcept { return live_.load(std::memory_order_acquire); }

  // Fixed after construction.
  const std::vector<LedgerJob> parts_;
  // Synchronises itself. Of `ledger_`, which nobody takes away: messages that pass need no lock.
  std::atomic<JobLedger*> live_{nullptr};
  // Guarded by mutex_.
  Mutex mutex_;
  std::unique_ptr<JobLedger> ledger_ SLUICE_GUARDED_BY(mutex_);
  std::uint32_t unrecorded_ SLUICE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice::isolation
