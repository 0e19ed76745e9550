#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/source.hpp"
#include "host/stores/leased/owned_half.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "host/stores/leased/ownership_coordinator.hpp"

namespace sluice::queue::leased {

/// Everything that this process owns of one table: one lease, one heartbeat, and the halves of queues that it works on.
/// Thread-safe. A resource; it outlives the sources of its halves.
class OwnedTable {
 public:
  /// `machine` is this machine's clock; the references outlive it.
  OwnedTable(OwnershipCoordinator::Settings settings, table::StoreParts parts, const Clock& machine, Random& random);

  /// The half of that address; made with these settings when it is asked for first. It lives as long as the table.
  OwnedHalf& half(const OwnedHalf::Settings& settings, const table::QueueTable& place, const OwnerWriter& writer);
  OwnershipCoordinator& coordinator() { return coordinator_; }

  /// A source begins to work on the half; and ends.
  std::uint32_t start(OwnedHalf& half, SourceEvents events);
  void stop(OwnedHalf& half, std::uint32_t source);
  Result<Claimed> claim(OwnedHalf& half, std::uint32_t source, const ClaimRequest& request, Deadline deadline);
  /// What this process knows of a half now; nothing where no source works on it.
  std::optional<OwnWord> word_of(const QueueAddress& address);

 private:
  // Fixed after construction.
  const table::StoreParts parts_;
  const Clock& machine_;
  Random& random_;

  Mutex mutex_;
  // Halves are never removed, so that references to them live as long as the table.
  std::map<QueueAddress, std::unique_ptr<OwnedHalf>> halves_ SLUICE_GUARDED_BY(mutex_);

  OwnershipCoordinator coordinator_;  // synchronises itself; its thread ends before the halves do
};

/// A source of one queue half on this layout.
///
/// Started, it works on shards that its host owns: nothing is written when a message is handed out, and `lost` takes
/// back what lies in a shard that is not the host's any more. Not started, it borrows: see `borrower`, which also
/// settles what another process was handed.
class LeasedSource final : public Source {
 public:
  /// The references outlive the source. `borrower` is never started.
  LeasedSource(OwnedTable& table, OwnedHalf& half, std::unique_ptr<Source> borrower, Doorbell& doorbell)
      : table_(table), half_(half), borrower_(std::move(borrower)), doorbell_(doorbell) {}
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

  Mutex mutex_;
  bool stopped_ SLUICE_GUARDED_BY(mutex_) = false;
  std::optional<std::uint32_t> number_ SLUICE_GUARDED_BY(mutex_);  ///< among the half's sources, once it is started
  Doorbell::Subscription subscription_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::leased
