#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/source.hpp"
#include "host/stores/core/receipt_memory.hpp"
#include "host/stores/leased/table_messages.hpp"
#include "host/stores/leased/table_ownership.hpp"
#include "host/stores/owned/owned_half.hpp"
#include "host/stores/owned/ownership_coordinator.hpp"

namespace sluice::queue::leased {

using owned::OwnedHalf;

/// Everything that this process owns of one table: one lease, one heartbeat, and the halves of queues that it works on.
/// Thread-safe. A resource; it outlives the sources of its halves.
class OwnedTable {
 public:
  /// `machine` is this machine's clock; it and what the parts refer to outlive the table.
  OwnedTable(const owned::OwnershipCoordinator::Settings& settings, const table::StoreParts& parts,
             const Clock& machine);

  struct HalfSettings {
    Half half = Half::standard;
    bool strict_fence = false;  ///< what is committed with effects holds only while the shard is this host's
    std::function<void(const std::string&)> warn{};
  };
  /// That half of the queue; made with these settings when it is asked for first. It lives as long as the table.
  OwnedHalf& half(const HalfSettings& settings, LeasedQueue& queue);
  owned::OwnershipCoordinator& coordinator() { return coordinator_; }

  /// A source begins to work on the half; and ends.
  std::uint32_t start(OwnedHalf& half, SourceEvents events);
  void stop(OwnedHalf& half, std::uint32_t source);
  Result<Claimed> claim(OwnedHalf& half, std::uint32_t source, const ClaimRequest& request, Deadline deadline);
  /// What this process knows of a half now; nothing where no source works on it.
  std::optional<OwnWord> word_of(const QueueAddress& address);

 private:
  struct OfQueue {
    OfQueue(const HalfSettings& settings, LeasedQueue& queue, owned::HostLease& lease)
        : messages(queue, settings.half, settings.strict_fence),
          half({queue.place.queue, settings.half}, settings.warn, messages, lease, queue.parts.clock, queue.random) {}
    TableMessages messages;
    OwnedHalf half;
  };
  /// That queue, of which there is a half.
  LeasedQueue& queue_of(const std::string& queue);

  // Fixed after construction.
  const Clock& machine_;

  Mutex mutex_;
  // Halves are never removed, so that references to them live as long as the table.
  std::map<QueueAddress, std::unique_ptr<OfQueue>> halves_ SLUICE_GUARDED_BY(mutex_);

  TableOwnership records_;                   // of the coordinator
  owned::OwnershipCoordinator coordinator_;  // synchronises itself; its thread ends before the halves do
};

/// Claims for those who own no shard: a command, a client, anybody who takes a message now and then. Each claim is
/// written, so that its lease is a promise of the record's and every end is known; it takes messages only from shards
/// that no host owns, and the same transaction makes sure of that. Costs 2 WCU and the share of the check a message;
/// whoever works on a queue all the time starts its source, and owns.
///
/// Settles and extends whatever it is given a receipt for, its own or another process's. Thread-safe.
class DirectClaimer {
 public:
  static constexpr int kMaxRounds = 4;
  static constexpr std::size_t kMostInTransaction = 99;  ///< beside the check of the owner
  static constexpr std::size_t kGroupsRemembered = 10'000;

  DirectClaimer(LeasedQueue& queue, Half half) : queue_(queue), parts_(queue.parts), place_(queue.place), half_(half) {}

  Result<Claimed> claim(const ClaimRequest& request, Deadline deadline);
  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline);
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline);

 private:
  using Records = std::vector<std::pair<Candidate, dynamo::Item>>;
  struct Shard;
  struct Unowned;
  struct Attempt;

  dynamo::Result<Records> read(std::uint32_t shard, const ClaimRequest& request, bool in_turns,
                               Deadline deadline) const;
  Result<Unowned> read_unowned(std::uint32_t shards, const ClaimRequest& request, Deadline deadline) const;
  void fill(owned::Backlog& backlog, Unowned& unowned, Attempt& attempt) const;
  std::vector<owned::Entry*> choose(owned::Backlog& backlog, const ClaimRequest& request, WallTime now)
      SLUICE_REQUIRES(mutex_);
  /// One look and what it brings. False: some of what was chosen has gone to somebody else.
  Result<bool> claim_once(std::uint32_t shards, const ClaimRequest& request, Attempt& attempt, Deadline deadline);
  /// False: some of them have gone to somebody else, or cannot be claimed.
  bool claim_of_shard(const Shard& shard, std::vector<owned::Entry*> wanted, const ClaimRequest& request,
                      Attempt& attempt, Deadline deadline);
  Delivery deliver(const owned::Entry& one, const ClaimRequest& request, table::Moment now, WallTime until);
  std::optional<Held> recall(const Receipt& receipt) const;

  // Fixed after construction.
  LeasedQueue& queue_;
  const table::StoreParts& parts_;
  const table::QueueTable& place_;
  const Half half_;

  core::ReceiptMemory<Held, 10'000> held_;  ///< what was claimed here; synchronises itself

  Mutex mutex_;
  // Guarded by mutex_.
  owned::Backlog::Turns turns_ SLUICE_GUARDED_BY(mutex_);
  std::deque<std::string> served_order_ SLUICE_GUARDED_BY(mutex_);
  WallTime last_served_ SLUICE_GUARDED_BY(mutex_){};
};

/// A source of one queue half on this layout.
///
/// Started, it works on shards that its host owns: nothing is written when a message is handed out, and `lost` takes
/// back what lies in a shard that is not the host's any more. Not started, it claims directly (DirectClaimer), as what
/// another process was handed is settled, too.
class LeasedSource final : public Source {
 public:
  /// The references outlive the source.
  LeasedSource(OwnedTable& table, OwnedHalf& half, LeasedQueue& queue, Doorbell& doorbell)
      : table_(table), half_(half), direct_(queue, half.address().half), doorbell_(doorbell) {}
  ~LeasedSource() override { stop(); }

  const SourceTraits& traits() const override;
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
  DirectClaimer direct_;
  Doorbell& doorbell_;

  Mutex mutex_;
  bool stopped_ SLUICE_GUARDED_BY(mutex_) = false;
  std::optional<std::uint32_t> number_ SLUICE_GUARDED_BY(mutex_);  ///< among the half's sources, once it is started
  Doorbell::Subscription subscription_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::leased
