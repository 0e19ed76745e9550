#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/operator.hpp"
#include "host/stores/leased/keeper_rounds.hpp"
#include "host/stores/leased/leased_inspector.hpp"
#include "host/stores/leased/leased_parts.hpp"
#include "host/stores/leased/moved_half.hpp"
#include "host/stores/leased/ownership_coordinator.hpp"

namespace sluice::queue::leased {

/// The shards of a queue in the hands of one who carries its messages elsewhere. He is one of those that own shards,
/// with a heartbeat that says so: the plan which all hosts make gives all shards to such ones, as long as one of them
/// lives, and each host hands over as it does to any other. When he dies, his lease runs out.
class ShardMoveOwnership final : public MoveOwnership {
 public:
  struct Settings {
    std::vector<Half> halves;
    std::uint32_t shards = kDefaultShards;
    OwnershipCoordinator::Settings keeping;
    bool own_thread = true;  ///< false: housekeeping is done by `tend`, as a simulation wants it
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
  SteadyTime relied_until() override { return keeper_.holds_until(); }
  void taken() override;
  bool give_back() override;

 private:
  class HeldOperator;

  const MovedHalf* half_of(Half half) const;

  // Fixed after construction.
  const Settings settings_;
  const Clock& machine_;
  OwnershipCoordinator keeper_;  // synchronises itself
  KeeperRounds rounds_;
  std::map<Half, std::unique_ptr<MovedHalf>> halves_;
  const std::unique_ptr<Operator> operator_;

  // Of the thread that calls.
  bool given_back_ = false;
  std::map<std::string, std::pair<Half, std::uint32_t>> listed_;  ///< by id
  std::map<std::string, OwnerFence> taking_;                      ///< the same

  std::jthread thread_;
};

}  // namespace sluice::queue::leased
