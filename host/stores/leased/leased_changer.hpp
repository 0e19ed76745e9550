#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "host/queue/operator.hpp"
#include "host/stores/leased/leased_actions.hpp"
#include "host/stores/leased/leased_lookup.hpp"
#include "host/stores/leased/leased_parts.hpp"

namespace sluice::queue::leased {

/// Changes messages of one queue by id, as operators ask for it. Thread-safe.
///
/// Each record is read, a hundred at a time, and written conditional on what was read. A change of visibility is a
/// write in place, 1 write unit for each KB, a removal the same; one that has a fence is a transaction with a check of
/// it, at twice that and 2 for each fence. All others give the message another place in the order or another half,
/// which is another key: a transaction that removes it, puts it there and has its alias say where, 6 write units.
class LeasedChanger {
 public:
  static constexpr int kMaxRaces = 5;  ///< lost in a row against others who change the same message

  /// The fence of a message whose shard is whoever's changes it; nothing: it has none. May be empty.
  using FenceOf = std::function<std::optional<OwnerFence>(const std::string& id)>;

  LeasedChanger(LeasedParts parts, LeasedQueue& queue, FenceOf fence_of = {})
      : parts_(parts), queue_(queue), lookup_(parts.store.client, queue.place), fence_of_(std::move(fence_of)) {}

  /// As Operator::change.
  std::vector<ChangeResult> change(std::span<const Change> changes, Deadline deadline) const;

 private:
  struct Task;

  void look(std::vector<Task>& tasks, Deadline deadline) const;
  void look_at_holds(std::vector<Task>& tasks, Deadline deadline) const;
  void judge(Task& task, LeasedLookup::Found&& standing) const;
  bool judge_doubt(Task& task, const LeasedLookup::Found& standing) const;
  void write(std::vector<Task>& tasks, Deadline deadline) const;
  table::RecordWrite in_place(const Task& task, WallTime now) const;
  void write_in_place(std::vector<Task*>& tasks, WallTime now, Deadline deadline) const;
  void write_fenced(const std::vector<Task*>& tasks, WallTime now, Deadline deadline) const;
  void note_fenced(const std::vector<Task*>& tasks, const std::vector<OwnerFence>& fences,
                   const dynamo::TransactResult& result) const;
  void move(std::vector<Task*>& tasks, WallTime now, Deadline deadline) const;
  dynamo::Item moved(const Task& task, const Place& to, WallTime now) const;
  Place goal(const Task& task, std::uint32_t shards, WallTime now, std::int64_t number) const;
  void note(Task& task, const table::StatementOutcome& outcome) const;
  void note_move(Task& task, const dynamo::TransactResult& result) const;
  void clean_up(const std::vector<Task*>& removed, Deadline deadline) const;

  LeasedParts parts_;
  LeasedQueue& queue_;
  LeasedLookup lookup_;
  FenceOf fence_of_;
};

/// The transaction that brings a record from where it was read to where `moved` lies, under the same id.
dynamo::TransactWriteRequest move_request(const table::QueueTable& table, const dynamo::Item& read,
                                          const dynamo::Item& moved, Random& random);

}  // namespace sluice::queue::leased
