#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/source.hpp"
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
    Mutex door;  ///< one source comes or goes at a time: whoever comes must not meet the end of who was the last
    std::atomic<int> coming{0};  ///< sources that wait at the door: whoever leaves keeps the shards for them
  };
  OfQueue& of_queue(const OwnedHalf& half);
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

/// A source of one queue half on this layout; the references outlive it.
///
/// Started, it works on shards that its host owns: nothing is written when a message is handed out, and `lost` takes
/// back what lies in a shard that is not the host's any more.
///
/// Not started, it claims for those who own no shard: a command, a client, anybody who takes a message now and then.
/// Each claim is written then, so that its lease is a promise of the record's and every end is known; it takes messages
/// only from shards that no host owns, and the same transaction makes sure of that. Costs 2 WCU and the share of the
/// check a message; whoever works on a queue all the time starts its source, and owns. It settles and extends whatever
/// it is given a receipt for, its own or another process's.
std::unique_ptr<Source> make_leased_source(OwnedTable& table, OwnedHalf& half, LeasedQueue& queue, Doorbell& doorbell);

}  // namespace sluice::queue::leased
