#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "host/stores/leased/assignment.hpp"
#include "host/stores/leased/in_flight_bound.hpp"
#include "host/stores/membership.hpp"

namespace sluice::queue::leased {

/// Whose a shard is: one item for each, written only when it changes hands. A value.
struct Ownership {
  std::uint32_t shard = 0;
  std::string owner;       ///< a host's incarnation; empty: nobody's yet
  std::int64_t epoch = 0;  ///< grows with each change of hands; 0: there is no item
  /// The owner before has settled all that it had handed out. False: what lies at the head may be in anybody's hands.
  bool clean = true;
  /// Where it is not: how much owners before have left, but for the last one's own.
  InFlightBound left = 0;

  friend bool operator==(const Ownership&, const Ownership&) = default;
};

/// Decides which shards of one half of a queue a host takes, keeps and hands over. Step functions: they take the time
/// and what was read, and return what to write. Not thread-safe.
///
/// Nothing is ever taken from a host that lives: it hands over by itself what the plan gives to another, once it has
/// settled what it had handed out of it. What a dead host leaves behind is taken by whom the plan gives it to: hosts of
/// which something is heard, and which did not just end without a word and come back, as long as there are such.
class ShardKeeper {
 public:
  /// A write of an ownership item, conditional on what was read.
  struct Move {
    Ownership before;
    Ownership after;
    friend bool operator==(const Move&, const Move&) = default;
  };
  enum class Keeping { none, owned, closing };

  ShardKeeper(std::string host, std::string half) : host_(std::move(host)), half_(std::move(half)) {}

  /// A consistent read of the half's ownership items, made after this host's last write of one, one for each shard, in
  /// their order, while this host's lease holds. Returns the shards to be taken, as writes to be made. What is
  /// another's by now is lost.
  std::vector<Move> look(std::span<const Ownership> read, Membership& members, SteadyTime now);
  /// A move has been written. One that was refused, because somebody else was first, needs no word: the next look
  /// shows by whom.
  void moved(const Move& move);

  /// What this host does with a shard: none of it, all, or no more than settle what is out.
  Keeping keeping(std::uint32_t shard) const;
  std::int64_t epoch(std::uint32_t shard) const { return shard < mine_.size() ? mine_[shard].item.epoch : 0; }
  /// The shards that were lost since this was last asked, with all that had been handed out of them.
  std::vector<std::uint32_t> take_lost();
  /// The hand-over of a shard that is closing and of which nothing is out any more.
  Move hand_over(std::uint32_t shard) const;
  /// The plan gives this host a shard that another one still has: it will soon be handed over.
  bool expects() const { return expects_; }
  /// The end of a shard beyond the number that there are to be, with nothing in it: it is nobody's.
  Move give_up(std::uint32_t shard) const;
  std::vector<std::uint32_t> shards() const;

  /// This host's lease has run out: nothing is its own any more. Somebody may have taken it for dead and be about to
  /// take its shards, so that it has to take them anew even where the items still name it.
  void lease_lost();

 private:
  struct Mine {
    Keeping keeping = Keeping::none;
    Ownership item;
    std::string heir;   ///< of one that is closing
    bool torn = false;  ///< its item is gone, or was set back: whoever had it may have left something at work
  };

  /// What is known of the owner that an item names.
  struct OwnerState {
    bool lives = false;
    bool settled = false;  ///< nothing that it had handed out is in doubt
  };

  std::set<std::string> planned_hosts(const Owners& owners, const Membership& members, SteadyTime now) const;
  void recognise(const Ownership& item);
  std::optional<Move> follow(const Ownership& item, const std::string& planned, OwnerState owner);
  void lose(Mine& mine, std::uint32_t shard);

  const std::string host_;
  const std::string half_;
  bool expects_ = false;
  bool interrupted_ = false;  ///< the lease has been lost since the last look
  std::vector<Mine> mine_;    ///< by shard
  std::vector<std::uint32_t> lost_;
};

}  // namespace sluice::queue::leased
