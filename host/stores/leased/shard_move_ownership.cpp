#include "host/stores/leased/shard_move_ownership.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/mutex.hpp"
#include "host/stores/leased/leased_operator.hpp"
#include "host/stores/leased/leased_source.hpp"

namespace sluice::queue::leased {
namespace {

/// The shards of a half that this process has in order to carry their messages elsewhere. It reads nothing ahead and
/// hands nothing out. Thread-safe.
///
/// A shard whose owner before has not settled everything is not to be touched until those of its messages that may have
/// been at work are marked as suspects, so that they are so wherever they are carried.
class MovedHalf final : public owned::ShardHolder {
 public:
  /// The queue outlives it.
  MovedHalf(LeasedQueue& queue, Half half)
      : address_{queue.place.queue, half}, parts_(queue.parts), place_(queue.place), messages_(queue, half, false) {}

  /// Marks what may have been at work in an owner who died. What fails is tried again by the next call.
  void mark_suspects(Deadline deadline) {
    std::map<std::uint32_t, Taken> shards;
    {
      const MutexLock lock(mutex_);
      shards = shards_;
    }
    for (const auto& [number, shard] : shards) {
      bool marked = shard.left > 0;
      for (std::size_t priority = 0; marked && priority < kPriorities; ++priority) {
        marked = mark(shard, static_cast<Priority>(priority), deadline);
      }
      if (!marked) {
        continue;
      }
      const MutexLock lock(mutex_);
      // One that has been lost meanwhile and taken again has another epoch.
      if (const auto found = shards_.find(number); found != shards_.end() && found->second.epoch == shard.epoch) {
        found->second.left = 0;
        ++changes_;
      }
    }
  }

  MoveOwnership::Progress progress() const {
    const MutexLock lock(mutex_);
    const auto held =
        std::count_if(shards_.begin(), shards_.end(), [](const auto& one) { return one.second.is_held(); });
    return {.held = static_cast<std::size_t>(held), .all = all_, .changes = changes_};
  }

  /// What tells the table that a shard is held; nothing: it is not.
  std::optional<OwnerFence> fence_of(std::uint32_t shard) const {
    const MutexLock lock(mutex_);
    const auto found = shards_.find(shard);
    return found == shards_.end() || !found->second.is_held()
               ? std::nullopt
               : std::optional(OwnerFence::of(address_, shard, found->second.epoch));
  }

  // ShardHolder
  const QueueAddress& address() const override { return address_; }
  void own(std::span<const Shard> shards, std::uint32_t all) override {
    const MutexLock lock(mutex_);
    changes_ += std::exchange(all_, all) == all ? 0 : 1;
    std::map<std::uint32_t, Taken> mine;
    for (const Shard& given : shards) {
      Taken& taken = mine.emplace(given.number, Taken{given, parts_.clock.wall_now()}).first->second;
      if (const auto known = shards_.extract(given.number)) {
        taken.left = known.mapped().left;
        taken.until = known.mapped().until;
      } else {
        ++changes_;
      }
    }
    changes_ += shards_.size();  // those that are lost
    shards_ = std::move(mine);
  }

  std::optional<InFlightBound> left_in(std::uint32_t shard) override {
    const MutexLock lock(mutex_);
    const auto found = shards_.find(shard);
    return found == shards_.end() ? std::nullopt : std::optional(found->second.left);
  }

  bool is_empty(std::uint32_t) const override { return false; }
  bool busy() const override { return true; }
  /// Nothing is at work in it; what may have been in those before stands in the ownership items.
  InFlightBound in_flight_bound() override { return 0; }
  // What lies there it does not know, so that whoever wants to know counts.
  OwnerFigures figures() const override {
    const MutexLock lock(mutex_);
    const auto shards = static_cast<std::uint32_t>(shards_.size());
    return {.unread = std::max(1U, shards), .shards = shards};
  }
  bool moves() const override { return true; }

 private:
  /// `left`: so much owners before may have had at work, of what was due by `until`, and is not marked yet.
  struct Taken : Shard {
    WallTime until{};

    bool is_held() const { return !closing && left == 0; }
  };

  // True: all that may have been at work has been marked. As an owner would take them for suspects. Whatever went
  // otherwise is looked at again.
  bool mark(const Taken& shard, Priority priority, Deadline deadline) {
    const auto candidates = in_doubt(shard, priority, deadline);
    if (!candidates) {
      return false;
    }
    std::vector<table::RecordWrite> writes;
    const std::string partition = partition_of(address_.queue, address_.half, shard.number);
    for (const owned::Found& one : *candidates) {
      const core::StateChange suspect{.marks = one.state.marks | core::kSuspect};
      if (suspect.marks != one.state.marks) {
        writes.push_back(
            update_of(kNames, place_.table, as_read({partition, one.sort}, version_mark(one.state.version)),
                      {parts_.nonces.anonymous(), parts_.clock.wall_now()}, attributes_of(kNames, suspect)));
      }
    }
    const auto outcomes = parts_.runner.run(std::move(writes), table::Repetition::until_known, deadline);
    return std::all_of(outcomes.begin(), outcomes.end(),
                       [](const auto& outcome) { return outcome.fate == table::StatementFate::done; });
  }

  // What of a priority may have been at work, marked or not. Nothing: it could not be read.
  std::optional<std::vector<owned::Found>> in_doubt(const Taken& shard, Priority priority, Deadline deadline) {
    owned::MessageRecords::Query query{
        shard.number,
        {.from = first_sort_key(priority, WallTime{}), .to = last_sort_key(priority, shard.until), .consistent = true}};
    owned::OrphanedRange orphaned(shard.left, shard.until);
    std::vector<owned::Found> read;
    for (bool more = true; more && !orphaned.is_read();) {
      auto page = messages_.read(std::span(&query, 1), deadline).front();
      if (!page) {
        return std::nullopt;
      }
      for (owned::Found& one : page->found) {
        if (one.odd.empty()) {
          orphaned.saw(one.sort);
          one.record.reset();  // where it lies and what it says of itself is all that is asked
          read.push_back(std::move(one));
        }
      }
      more = !page->stopped_at.empty();
      query.order.from = owned::beyond(page->stopped_at);
    }
    // What concerns whom is known once all has been counted.
    std::erase_if(read, [&orphaned](const owned::Found& one) { return !orphaned.concerns(one.sort, one.due_at()); });
    return read;
  }

  // Fixed after construction.
  const QueueAddress address_;
  const table::StoreParts& parts_;
  const table::QueueTable& place_;
  TableMessages messages_;

  mutable Mutex mutex_;
  // Guarded by mutex_.
  std::map<std::uint32_t, Taken> shards_ SLUICE_GUARDED_BY(mutex_);
  std::uint32_t all_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::uint64_t changes_ SLUICE_GUARDED_BY(mutex_) = 0;
};

/// The shards of a queue in the hands of one who carries its messages elsewhere. He is one of those that own shards,
/// with a heartbeat that says so: the plan which all hosts make gives all shards to such ones, as long as one of them
/// lives, and each host hands over as it does to any other. When he dies, his lease runs out.
class ShardMoveOwnership final : public MoveOwnership {
 public:
  ShardMoveOwnership(const std::vector<Half>& halves, const owned::OwnershipCoordinator::Settings& keeping,
                     LeasedQueue& queue, owned::Remarks& remarks, const Clock& machine)
      : table_(keeping, queue.parts, remarks, machine, [&queue](const auto&) -> LeasedQueue& { return queue; }),
        operator_(make_leased_operator(queue, &held_)) {
    for (const Half half : halves) {
      auto& moved = halves_[half] = std::make_unique<MovedHalf>(queue, half);
      coordinator_.join(*moved);
    }
  }
  ~ShardMoveOwnership() override { ShardMoveOwnership::give_back(); }

  void tend(Deadline deadline) override {
    coordinator_.tend(deadline);
    for (const auto& [half, moved] : halves_) {
      moved->mark_suspects(deadline);
    }
  }

  Progress standing(Half half) const override {
    const auto found = halves_.find(half);
    return found == halves_.end() ? Progress{} : found->second->progress();
  }

  Operator& oper() override { return *operator_; }
  SteadyTime relied_until() override { return coordinator_.lease().holds_until(); }

  // As a host starts no handler in the last third of a lease, nothing is taken in it. Should this process be frozen
  // from here on until the lease has run out, what it writes then is refused by the fence.
  bool begin_taking() override { return held_.taking = coordinator_.lease().may_start(); }
  void end_taking() override { held_.taking = false; }

  bool give_back() override {
    if (std::exchange(given_back_, true)) {
      return true;
    }
    bool all = true;
    for (const auto& [half, moved] : halves_) {
      all = coordinator_.leave(*moved, [] { return false; }) && all;
    }
    for (const auto& [half, moved] : halves_) {
      coordinator_.forget(*moved);
    }
    return all;
  }

 private:
  std::map<Half, std::unique_ptr<MovedHalf>> halves_;
  OwnedTable table_;  // its thread ends before the halves do
  owned::OwnershipCoordinator& coordinator_ = table_.coordinator;
  // Of the thread that calls.
  HeldShards held_{.fence_of = [this](Half half, std::uint32_t shard) {
    const auto moved = halves_.find(half);
    return moved == halves_.end() ? std::nullopt : moved->second->fence_of(shard);
  }};
  std::unique_ptr<Operator> operator_;
  bool given_back_ = false;
};

}  // namespace

std::unique_ptr<MoveOwnership> own_to_move(const std::vector<Half>& halves,
                                           const owned::OwnershipCoordinator::Settings& keeping, LeasedQueue& queue,
                                           owned::Remarks& remarks, const Clock& machine) {
  return std::make_unique<ShardMoveOwnership>(halves, keeping, queue, remarks, machine);
}

}  // namespace sluice::queue::leased
