#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.hpp"
#include "host/queue/source.hpp"
#include "host/stores/leased/table_messages.hpp"
#include "host/stores/leased/table_ownership.hpp"
#include "host/stores/owned/owned_half.hpp"
#include "host/stores/owned/ownership_coordinator.hpp"

namespace sluice::queue::leased {

using owned::OwnedHalf;

/// What this process owns of one table: one lease and one heartbeat for all halves of queues that it works on.
struct OwnedTable {
  /// `machine` is this machine's clock; it, the remarks, the queues and what the parts refer to outlive the table.
  OwnedTable(const owned::OwnershipCoordinator::Settings& settings, const table::StoreParts& parts,
             owned::Remarks& remarks_of_all, const Clock& machine, TableOwnership::QueueOf queue_of)
      : remarks(remarks_of_all),
        records(settings.table, parts, remarks, std::move(queue_of)),
        coordinator(settings, records, remarks, machine) {}

  owned::Remarks& remarks;
  TableOwnership records;
  owned::OwnershipCoordinator coordinator;
};

/// One of these halves. Its sources share what is owned of it.
struct LeasedHalf {
  /// `strict_fence`: what is committed with effects holds only while the shard is this host's. The references outlive
  /// it.
  LeasedHalf(OwnedTable& of_table, LeasedQueue& of_queue, Half half, bool strict_fence = false)
      : table(of_table),
        queue(of_queue),
        messages(queue, half, strict_fence),
        owned({queue.place.queue, half}, messages, table.coordinator.lease(), table.remarks, queue.parts.clock,
              queue.parts.random) {}

  OwnedTable& table;
  LeasedQueue& queue;
  TableMessages messages;
  OwnedHalf owned;
  Mutex door;  ///< one source comes or goes at a time: whoever comes must not meet the end of who was the last
  std::atomic<int> coming{0};  ///< sources that wait at the door: whoever leaves keeps the shards for them
};

/// A source of that half, which outlives it.
///
/// Started, it works on shards that its host owns: nothing is written when a message is handed out, and `lost` takes
/// back what lies in a shard that is not the host's any more.
///
/// Not started, it claims for those who own no shard: a command, a client, anybody who takes a message now and then.
/// Each claim is written then, so that its lease is a promise of the record's and every end is known; it takes messages
/// only from shards that no host owns, and the same transaction makes sure of that. Costs 2 WCU and the share of the
/// check a message; whoever works on a queue all the time starts its source, and owns. It settles and extends whatever
/// it is given a receipt for, its own or another process's.
std::unique_ptr<Source> make_leased_source(LeasedHalf& half);

}  // namespace sluice::queue::leased
