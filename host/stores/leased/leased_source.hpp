#pragma once

#include <atomic>
#include <memory>

#include "base/mutex.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/source.hpp"
#include "host/stores/leased/owned_table.hpp"

namespace sluice::queue::leased {

/// A source of one queue half on this layout.
///
/// Started, it works on shards that its host owns: nothing is written when a message is handed out, and `lost` takes
/// back what lies in a shard that is not the host's any more. Not started, it borrows: see `borrower`, which also
/// settles what another process was handed.
class LeasedSource final : public Source {
 public:
  /// The references outlive the source. `borrower` is never started.
  LeasedSource(OwnedTable& table, OwnedHalf& half, std::unique_ptr<Source> borrower, Doorbell& doorbell,
               const Clock& clock)
      : table_(table), half_(half), borrower_(std::move(borrower)), doorbell_(doorbell), clock_(clock) {}
  ~LeasedSource() override { stop(); }

  const SourceTraits& traits() const override { return borrower_->traits(); }
  void start(SourceEvents events) override;
  void stop() override;
  Result<Claimed> claim(const ClaimRequest& request, Deadline deadline) override;
  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline) override;
  bool holds(std::uint32_t part) override;
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline) override;

 private:
  // Fixed after construction.
  OwnedTable& table_;
  OwnedHalf& half_;
  const std::unique_ptr<Source> borrower_;
  Doorbell& doorbell_;
  const Clock& clock_;

  Mutex mutex_;
  bool started_ SLUICE_GUARDED_BY(mutex_) = false;
  bool stopped_ SLUICE_GUARDED_BY(mutex_) = false;
  std::uint32_t number_ SLUICE_GUARDED_BY(mutex_) = 0;
  Doorbell::Subscription subscription_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::leased
