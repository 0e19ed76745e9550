#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "host/isolation/crash_ledger.hpp"

namespace sluice::isolation {

/// The part of the crash ledger of a job with several queues: a ledger for each, by the part of a receipt. As JobLedger
/// otherwise.
class SplitLedger final : public JobLedger {
 public:
  /// Each of one queue, in the order of the job's queues; none is null.
  explicit SplitLedger(std::vector<std::shared_ptr<JobLedger>> ledgers) : ledgers_(std::move(ledgers)) {}

  HeldSlot hold(const queue::Delivery& delivery) noexcept override;
  void renew(HeldSlot slot, const queue::Receipt& receipt) noexcept override;
  void started(HeldSlot slot) noexcept override;
  void ended(HeldSlot slot) noexcept override;
  void drop(HeldSlot slot) noexcept override;

 private:
  const std::vector<std::shared_ptr<JobLedger>> ledgers_;
  std::vector<std::uint16_t> part_of_;  ///< by slot; touched only under the job's lock
};

}  // namespace sluice::isolation
