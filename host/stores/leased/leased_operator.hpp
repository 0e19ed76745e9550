#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/stores/leased/leased_writer.hpp"
#include "host/stores/table/record_operator.hpp"

namespace sluice::queue::leased {

/// The operators' side of one queue.
///
/// A change of visibility is a write in place, 1 write unit for each KB, a removal the same; one that has a fence is a
/// transaction with a check of it, at twice that and 2 for each fence. All other changes give the message another place
/// in the order or another half, which is another key: a transaction that removes it, puts it there and has its alias
/// say where, 6 write units. So is an edit of a priority, or of a group whose messages lie in another shard.
class LeasedOperator : public table::RecordOperator {
 public:
  /// The queue and the bell must outlive it.
  LeasedOperator(LeasedQueue& queue, Doorbell& doorbell);

  /// By the time of their keys, over all shards and priorities.
  Result<ListPage> list(const ListRequest& request, Deadline deadline) override {
    return list(request, deadline, nullptr);
  }
  /// What the owners of its shards have announced, for one read (the heartbeats; and the number of shards, where all
  /// hosts are of an older version). Where nobody tells, as nobody works on it, a megabyte of each shard is counted;
  /// all of it with an exact or consistent look.
  Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) override;
  /// The same; without ids and errors where its owners have said it.
  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) override;
  std::vector<PutResult> put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) override;

 protected:
  /// Some of the shards, and which of them each message lies in that was listed.
  struct Scope {
    std::set<std::uint32_t> shards;
    std::map<std::string, std::uint32_t> found{};  ///< by id
  };
  /// The fence of a message whose shard is whoever's changes it; nothing: it has none.
  virtual std::optional<OwnerFence> fence_of(const std::string& /*id*/) const { return std::nullopt; }
  /// Of the shards of the scope; null: of all.
  Result<ListPage> list(const ListRequest& request, Deadline deadline, Scope* scope) const;

 private:
  struct OfShard;

  void write(const std::vector<Task*>& tasks, Deadline deadline) const override;
  table::RecordWrite in_place(const Task& task, WallTime now) const;
  void write_in_place(const std::vector<Task*>& tasks, WallTime now, Deadline deadline) const;
  void write_fenced(const std::vector<OfShard>& tasks, WallTime now, Deadline deadline) const;
  void move(const std::vector<Task*>& tasks, WallTime now, Deadline deadline) const;
  std::map<const Task*, Place> old_places(const std::vector<Task*>& tasks, Deadline deadline) const;
  Place goal(const Task& task, std::uint32_t shards, WallTime now, std::int64_t number) const;
  dynamo::Item moved(const Task& task, const Place& to, WallTime now) const;
  dynamo::TransactWriteRequest move_request(const dynamo::Item& read, const dynamo::Item& moved) const;

  Result<dynamo::Item> edited(const dynamo::Item& before, std::span<const ContentEdit> edits,
                              Deadline deadline) const override;
  Result<Place> place_for(const dynamo::Item& before, const Message& was, const Message& is, Deadline deadline) const;
  dynamo::Result<dynamo::Item> put_edited(const dynamo::Item& before, const dynamo::Item& after,
                                          Deadline deadline) const override;

  Result<std::optional<QueueStats>> announced(Half half, Deadline deadline) const;
  Result<QueueOverview> count(const OverviewRequest& request, bool consistent, Deadline deadline) const;
  /// Where a record is to lie that is put as it stands.
  Place place_of(const StoredMessage& record, std::uint32_t shards) const;

  LeasedQueue& queue_;
};

}  // namespace sluice::queue::leased
