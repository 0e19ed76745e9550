#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/operator.hpp"
#include "host/stores/leased/leased_actions.hpp"
#include "host/stores/leased/orphaned_range.hpp"
#include "host/stores/leased/ownership_coordinator.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::leased {

/// The shards of a half that this process has in order to carry their messages elsewhere. It reads nothing ahead and
/// hands nothing out. Thread-safe.
///
/// A shard whose owner before has not settled everything is not to be touched until those of its messages that may have
/// been at work are marked as suspects, so that they are so wherever they are carried.
class MovedHalf final : public HalfDuty {
 public:
  /// The references outlive it.
  MovedHalf(QueueAddress address, std::uint32_t shards, table::StoreParts parts, const table::QueueTable& place,
            const std::string& host);

  /// Marks what may have been at work in an owner who died. What fails is tried again by the next call.
  void mark_suspects(Deadline deadline);
  MoveOwnership::Progress standing() const;
  /// Those that may be carried from.
  std::set<std::uint32_t> held() const;
  /// From now on that shard is not handed over, if it is held, which its fence tells the table; nothing: it is not.
  std::optional<OwnerFence> begin(std::uint32_t shard);
  void end();

  // HalfDuty
  const QueueAddress& address() const override { return address_; }
  std::uint32_t configured_shards() const override { return shards_; }
  std::vector<ShardKeeper::Move> look(std::span<const Ownership> read, std::uint32_t count, Membership& members,
                                      SteadyTime now) override;
  void moved(const ShardKeeper::Move& move, InFlightBound left, SteadyTime now) override;
  std::vector<ShardKeeper::Move> hand_overs() override;
  std::optional<ShardKeeper::Move> retirement(std::uint32_t, SteadyTime) override { return std::nullopt; }
  void lease_lost(SteadyTime now) override;
  bool expects() const override;
  bool busy(SteadyTime) const override { return true; }
  bool owns_any() const override;
  /// Nothing is at work in it; what may have been in those before stands in the ownership items.
  InFlightBound in_flight_bound() override { return 0; }
  OwnerFigures figures(SteadyTime now) const override;
  bool moves() const override { return true; }

 private:
  /// How much owners before may have had at work, of what was due by then.
  struct Doubt {
    InFlightBound left = 0;
    WallTime until{};
    std::uint64_t number = 0;
  };

  void follow_keeper(std::span<const Ownership> read) SLUICE_REQUIRES(mutex_);
  void gain(std::uint32_t shard, InFlightBound left) SLUICE_REQUIRES(mutex_);
  bool is_held(std::uint32_t shard) const SLUICE_REQUIRES(mutex_);
  bool mark(std::uint32_t shard, const Doubt& doubt, Deadline deadline);
  bool mark(std::uint32_t shard, Priority priority, const Doubt& doubt, Deadline deadline);
  /// What of a priority may have been at work, marked or not. Nothing: it could not be read.
  std::optional<std::vector<Candidate>> in_doubt(std::uint32_t shard, Priority priority, const Doubt& doubt,
                                                 Deadline deadline) const;

  // Fixed after construction.
  const QueueAddress address_;
  const std::uint32_t shards_;
  const table::StoreParts parts_;
  const table::QueueTable& place_;

  mutable Mutex mutex_;
  // Guarded by mutex_.
  ShardKeeper keeper_ SLUICE_GUARDED_BY(mutex_);
  std::set<std::uint32_t> mine_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::uint32_t, Doubt> doubts_ SLUICE_GUARDED_BY(mutex_);
  std::set<std::uint32_t> in_use_ SLUICE_GUARDED_BY(mutex_);
  std::size_t all_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::uint64_t changes_ SLUICE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice::queue::leased
