#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "host/queue/stored_message.hpp"
#include "host/stores/leased/half_reader.hpp"
#include "host/stores/leased/leased_lookup.hpp"
#include "host/stores/leased/leased_parts.hpp"

namespace sluice::queue::leased {

/// Looks at one queue and changes nothing. Thread-safe.
class LeasedInspector {
 public:
  LeasedInspector(LeasedParts parts, LeasedQueue& queue)
      : parts_(parts), queue_(queue), reader_(parts, queue), lookup_(parts.store.client, queue.place) {}

  /// Consistent.
  Result<StoredMessage> get(const std::string& id, Deadline deadline) const;
  /// The item itself, for those who change it; ErrorCode::not_found when absent.
  Result<dynamo::Item> record(const std::string& id, Deadline deadline) const;
  /// Some of the shards, and which of them each message lies in that was listed.
  struct Scope {
    std::set<std::uint32_t> shards;
    std::map<std::string, std::uint32_t> found{};  ///< by id
  };
  /// By the time of their keys, over all shards and priorities, or those of the scope.
  Result<ListPage> list(const ListRequest& request, Deadline deadline, Scope* scope = nullptr) const;
  /// What the owners of its shards have announced, for one read (the heartbeats; and the number of shards, where all
  /// hosts are of an older version). Where nobody tells, as nobody works on it, a megabyte of each shard is counted;
  /// all of it with an exact or consistent look.
  Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) const;
  /// The same; without ids and errors where its owners have said it.
  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) const;

 private:
  Result<std::optional<QueueStats>> announced(Half half, Deadline deadline) const;
  Result<QueueOverview> count(const OverviewRequest& request, bool consistent, Deadline deadline) const;
  static StoredMessage listed(const dynamo::Item& item, const ListRequest& request);

  LeasedParts parts_;
  LeasedQueue& queue_;
  HalfReader reader_;
  LeasedLookup lookup_;
};

/// The half of the queue that an item of a message lies in.
Half half_of(const dynamo::Item& item);

}  // namespace sluice::queue::leased
