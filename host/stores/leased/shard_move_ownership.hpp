#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/operator.hpp"
#include "host/stores/leased/leased_operator.hpp"
#include "host/stores/leased/leased_parts.hpp"
#include "host/stores/leased/leased_writes.hpp"
#include "host/stores/leased/ownership_coordinator.hpp"

namespace sluice::queue::leased {

/// The shards of a half that this process has in order to carry their messages elsewhere. It reads nothing ahead and
/// hands nothing out. Thread-safe.
///
/// A shard whose owner before has not settled everything is not to be touched until those of its messages that may have
/// been at work are marked as suspects, so that they are so wherever they are carried.
class MovedHalf final : public ShardHolder {
 public:
  /// The references outlive it.
  MovedHalf(QueueAddress address, std::uint32_t shards, table::StoreParts parts, const table::QueueTable& place)
      : address_(std::move(address)), configured_(shards), parts_(parts), place_(place) {}

  /// Marks what may have been at work in an owner who died. What fails is tried again by the next call.
  void mark_suspects(Deadline deadline);
  MoveOwnership::Progress progress() const;
  /// Those that may be carried from.
  std::set<std::uint32_t> held() const;
  /// From now on that shard is not handed over, if it is held, which its fence tells the table; nothing: it is not.
  std::optional<OwnerFence> begin(std::uint32_t shard);
  void end();

  // ShardHolder
  const QueueAddress& address() const override { return address_; }
  std::uint32_t configured_shards() const override { return configured_; }
  void own(std::span<const ShardHolder::Shard> shards, std::uint32_t all, SteadyTime now) override;
  std::optional<InFlightBound> left_in(std::uint32_t shard) override;
  bool is_empty(std::uint32_t) const override { return false; }
  bool busy(SteadyTime) const override { return true; }
  /// Nothing is at work in it; what may have been in those before stands in the ownership items.
  InFlightBound in_flight_bound() override { return 0; }
  OwnerFigures figures(SteadyTime now) const override;
  bool moves() const override { return true; }

 private:
  struct Shard {
    std::int64_t epoch = 0;
    bool closing = false;
    bool in_use = false;
    InFlightBound left = 0;  ///< so much owners before may have had at work, of what was due by `until`
    WallTime until{};
    std::uint64_t number = 0;  ///< each time that it is taken it is another one

    bool is_held() const { return !closing && left == 0; }
  };

  /// True: all that may have been at work has been marked.
  bool mark(std::uint32_t shard, const Shard& doubtful, Priority priority, Deadline deadline);
  /// What of a priority may have been at work, marked or not. Nothing: it could not be read.
  std::optional<std::vector<Candidate>> in_doubt(std::uint32_t shard, const Shard& doubtful, Priority priority,
                                                 Deadline deadline) const;

  // Fixed after construction.
  const QueueAddress address_;
  const std::uint32_t configured_;
  const table::StoreParts parts_;
  const table::QueueTable& place_;

  mutable Mutex mutex_;
  // Guarded by mutex_.
  std::map<std::uint32_t, Shard> shards_ SLUICE_GUARDED_BY(mutex_);
  std::uint32_t all_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::uint64_t changes_ SLUICE_GUARDED_BY(mutex_) = 0;
};

/// The shards of a queue in the hands of one who carries its messages elsewhere. He is one of those that own shards,
/// with a heartbeat that says so: the plan which all hosts make gives all shards to such ones, as long as one of them
/// lives, and each host hands over as it does to any other. When he dies, his lease runs out.
class ShardMoveOwnership final : public MoveOwnership {
 public:
  struct Settings {
    std::vector<Half> halves;
    std::uint32_t shards = kDefaultShards;
    OwnershipCoordinator::Settings keeping;
  };
  /// The references outlive it.
  ShardMoveOwnership(Settings settings, LeasedParts parts, LeasedQueue& queue, Doorbell& doorbell,
                     const Clock& machine);
  /// Gives it back.
  ~ShardMoveOwnership() override;

  void tend(Deadline deadline) override;
  Progress standing(Half half) const override;
  Operator& oper() override { return *operator_; }
  bool may_take(const std::string& id) override;
  SteadyTime relied_until() override { return coordinator_.lease().holds_until(); }
  void taken() override;
  bool give_back() override;

 private:
  class HeldOperator;

  std::map<Half, std::unique_ptr<MovedHalf>> halves_;
  OwnershipCoordinator coordinator_;  // synchronises itself; its thread ends before the halves do
  const std::unique_ptr<Operator> operator_;

  // Of the thread that calls.
  bool given_back_ = false;
  std::map<std::string, std::pair<Half, std::uint32_t>> listed_;  ///< by id
  std::map<std::string, OwnerFence> taking_;                      ///< the same
};

}  // namespace sluice::queue::leased
