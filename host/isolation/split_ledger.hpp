#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "host/isolation/crash_ledger.hpp"
#include "host/isolation/host_ledger.hpp"

namespace sluice::isolation {

/// The part of the crash ledger of a job with several queues: a ledger for each, by the part of a receipt. As JobLedger
/// otherwise.
class SplitLedger final : public JobLedger {
 public:
  /// Each of one queue, in the order of the job's queues; of one ledger, and none is null.
  explicit SplitLedger(std::vector<std::unique_ptr<JobLedger>> ledgers);

  HeldSlot hold(const queue::Delivery& delivery) noexcept override;
  void renew(HeldSlot slot, const queue::Receipt& receipt) noexcept override;
  void started(HeldSlot slot, std::string_view id) noexcept override;
  void ended(HeldSlot slot, bool finished) noexcept override;
  void committing(HeldSlot slot, Committing how) noexcept override;
  void drop(HeldSlot slot) noexcept override;

 private:
  const std::vector<std::unique_ptr<JobLedger>> ledgers_;
  std::vector<std::uint16_t> part_of_;  ///< by slot; touched only under the job's lock
};

/// A job's part, for each of its queues, as one. `unrecorded` as HostLedger::open's.
std::unique_ptr<JobLedger> open_parts(HostLedger& ledger, const std::vector<LedgerJob>& parts,
                                      std::uint32_t unrecorded = 0);

}  // namespace sluice::isolation
