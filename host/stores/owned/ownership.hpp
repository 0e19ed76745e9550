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
#include "host/stores/owned/membership.hpp"

/// Which parts of a queue a host takes, keeps and hands over, as shards of a leased table. Step functions, which know
/// nothing of where that is written down.
namespace sluice::queue::owned {

/// Who has each part, by its number; an empty name: nobody.
using Owners = std::vector<std::string>;

/// Who should have each part, so that all hosts come to the same plan from the same reads. Every host gets its share,
/// which differs by one part at most, and as few parts as can be change hands: whoever has one keeps it while it fits
/// into his share. `hosts` are those that live and stay; a part of anybody else is free. Without hosts nobody has any.
Owners assignment_plan(const Owners& owners, const std::set<std::string>& hosts);

/// Whose a part is, as it is written down for all to see; written only when it changes hands. A value.
struct Ownership {
  std::uint32_t part = 0;
  std::string owner;  ///< a host's incarnation; empty: nobody's yet
  /// Grows with each change of hands. 0: nothing is written down; below: something that nobody can read.
  std::int64_t epoch = 0;
  /// The owner before has settled all that it had handed out. False: what lies at the head may be in anybody's hands.
  bool clean = true;
  /// Where it is not: how much owners before have left, but for the last one's own.
  InFlightBound left = 0;
  bool drained = false;  ///< it lies beyond the number of parts, and nothing is left in it

  friend bool operator==(const Ownership&, const Ownership&) = default;
};

/// Decides which parts of one queue a host takes, keeps and hands over, where everybody sees who has what. Not
/// thread-safe.
///
/// Nothing is ever taken from a host that lives: it hands over by itself what the plan gives to another, once it has
/// settled what it had handed out of it. What a dead host leaves behind is taken by whom the plan gives it to: hosts of
/// which something is heard, and which did not just end without a word and come back, as long as there are such.
class PartKeeper {
 public:
  /// A write of an ownership, conditional on what was read.
  struct Move {
    Ownership before;
    Ownership after;
    friend bool operator==(const Move&, const Move&) = default;
  };
  enum class Keeping { none, owned, closing };

  PartKeeper(std::string host, std::string queue) : host_(std::move(host)), queue_(std::move(queue)) {}

  /// A consistent read of who has what, made after this host's last write of it, one for each part, in their order,
  /// while this host's lease holds. Returns the parts to be taken, as writes to be made. What is another's by now is
  /// lost.
  std::vector<Move> look(std::span<const Ownership> read, Membership& members, SteadyTime now);
  /// A move has been written. One that was refused, because somebody else was first, needs no word: the next look
  /// shows by whom.
  void moved(const Move& move);

  /// What this host does with a part: none of it, all, or no more than settle what is out.
  Keeping keeping(std::uint32_t part) const;
  std::int64_t epoch(std::uint32_t part) const { return part < mine_.size() ? mine_[part].item.epoch : 0; }
  /// The hand-over of a part that is closing, and out of which nothing is any more.
  Move hand_over(std::uint32_t part) const;
  /// The plan gives this host a part that another one still has: it will soon be handed over.
  bool expects() const { return expects_; }
  /// The end of a part beyond the number that there are to be, with nothing in it: it is nobody's.
  Move give_up(std::uint32_t part) const;
  /// Those that this host keeps, closing ones too.
  std::vector<std::uint32_t> parts() const;
  /// Some part is written down as this host's, even if it has lost it.
  bool is_named() const;

  /// This host's lease has run out: nothing is its own any more. Somebody may have taken it for dead and be about to
  /// take its parts, so that it has to take them anew even where they still are in its name.
  void lease_lost();

 private:
  struct Mine {
    Keeping keeping = Keeping::none;
    Ownership item;
    std::string heir;   ///< of one that is closing
    bool torn = false;  ///< what was written down is gone, or was set back: something may have been left at work
  };

  std::set<std::string> planned_hosts(const Owners& owners, const Membership& members, SteadyTime now) const;
  void recognise(const Ownership& item);
  /// `lives` is whether its owner does, `settled` whether nothing that the owner had handed out is in doubt.
  std::optional<Move> follow(const Ownership& item, const std::string& planned, bool lives, bool settled);

  std::string host_;
  std::string queue_;
  bool expects_ = false;
  bool interrupted_ = false;  ///< the lease has been lost since the last look
  std::vector<Mine> mine_;    ///< by part
};

}  // namespace sluice::queue::owned
