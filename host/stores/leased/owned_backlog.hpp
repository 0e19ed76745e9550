#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/source.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/shard_reader.hpp"
#include "host/stores/owned/ownership.hpp"
#include "host/stores/owned/priority_scheduler.hpp"

namespace sluice::queue::leased {

using owned::InFlightBound;
using owned::Spot;
using owned::Turn;

/// What of one priority of a shard owners before may have had at work when they died: everything up to the key that
/// lies as far behind the head as they had announced. It is known once so much has been read. Not thread-safe.
class OrphanedRange {
 public:
  OrphanedRange() = default;
  /// It was taken at `until`: what was not due by then was at work nowhere.
  OrphanedRange(InFlightBound bound, WallTime until) : bound_(bound), until_(until) {}

  /// A message has been read. Those of a priority are read in the order of their keys; one that is read again says
  /// nothing new.
  void saw(const std::string& sort);
  /// Nothing is left of it to be read.
  void read_to_end() { read_ = true; }
  bool is_read() const { return read_; }
  /// That message may be concerned.
  bool concerns(const Candidate& candidate) const;

  bool any() const { return bound_ > 0; }
  WallTime until() const { return until_; }
  /// So many at most that it may concern have not been read yet.
  InFlightBound unread() const { return read_ ? 0 : bound_ - counted_; }

 private:
  InFlightBound bound_ = 0;
  WallTime until_{};
  bool read_ = false;
  InFlightBound counted_ = 0;
  std::string counted_to_;  ///< once it is read: the last key that is concerned, unless what follows was not due
};

/// A message in memory.
struct Entry {
  std::uint32_t shard = 0;
  Candidate candidate;
  dynamo::Item item;
  std::size_t bytes = 0;
  bool out = false;
  bool known = false;      ///< it has come back to this host: nothing that was before concerns it
  bool inherited = false;  ///< it has gone out as one that an owner who died may have had
  bool sure = false;       ///< nothing can be missing that would have to go before it in its group
  std::uint64_t pass = 0;  ///< of its shard, that found it first
  SteadyTime seen_at{};    ///< when the read began that last found it, or it came back
  bool timed = false;      ///< it waits for its time
  bool counted = false;    ///< among what can be handed out
  std::optional<Turn> offered{};

  Spot spot() const { return {shard, candidate.place.sort}; }
  std::size_t priority() const { return static_cast<std::size_t>(candidate.priority); }
};

/// What became of a message that was out.
struct Return {
  enum class Kind {
    gone,     ///< removed, or dead-lettered
    back,     ///< it waits again, as its record says now
    unknown,  ///< its record is otherwise than was thought: it is read anew
  };
  Kind kind = Kind::gone;
  std::int64_t version = 1;  ///< of the record now; of one that is gone, or unknown: as it was
  std::optional<WallTime> not_before{};
  std::uint32_t receive_count = 0;
  Marks marks = 0;
  std::optional<dynamo::AttributeValue> failure{};  ///< what its record says of the last failure now
};

/// Remembers what has been read of the shards that this host owns: what can be handed out, what waits for its time, and
/// what is out. Decides what is handed out next: by priority, in turns by group, in order where that is asked for.
///
/// Memory is bounded: what waits for a time far ahead, what follows in a group that cannot go on, and at last all of
/// such a group, is dropped beyond a bound and found again by a sweep. Step functions. Not thread-safe.
class OwnedBacklog {
 public:
  struct Bounds {
    std::size_t timers = 10'000;
    std::size_t entries = 50'000;
  };
  OwnedBacklog() : OwnedBacklog(Bounds()) {}
  /// Whose turn it was, where that outlives a backlog.
  struct Turns {
    owned::PriorityScheduler priorities;
    std::map<std::string, WallTime> served;  ///< when a group had its last one
  };
  /// With `turns`, which outlive it, those before go on; nobody else uses them meanwhile.
  explicit OwnedBacklog(Bounds bounds, Turns* turns = nullptr)
      : bounds_(bounds), turns_(turns == nullptr ? own_turns_ : *turns) {}

  /// A shard is this host's. What lies there may have been in the hands of an owner who died, as far as `bound` goes
  /// and where it was due by `until`.
  void take_shard(std::uint32_t shard, InFlightBound bound, WallTime until);
  /// One that was closed stays after all: what was dropped is read anew.
  void reopen_shard(std::uint32_t shard);
  /// A read has come to its end, so that nothing is left of what was due when it was taken.
  void read_to_end(std::uint32_t shard);
  /// So has a sweep.
  void read_wholly(std::uint32_t shard);
  /// How far what may have been at work in an owner who died goes in it, with what is out of it; 0: there is no such
  /// thing. Whoever has it next would have to know, too.
  InFlightBound left_in(std::uint32_t shard) const;
  /// How far behind the head what is out lies, in whichever shard that is farthest.
  InFlightBound in_flight_bound();
  /// Nothing more goes out of it.
  void close_shard(std::uint32_t shard);
  /// It is not this host's any more; returns what is out of it.
  std::vector<Spot> lose_shard(std::uint32_t shard);

  enum class Admission { fresh, known, refused };
  /// A read that began then has found an item. One that was read before this host's own last write of it says nothing
  /// new.
  struct Sight {
    SteadyTime began{};
    bool consistent = false;
    WallTime now{};
    std::uint64_t pass = 0;
  };
  Admission admit(std::uint32_t shard, dynamo::Item item, const Sight& sight);
  /// A sweep begins, which brings back what was dropped; once it has ended, what it has not seen is not there any more.
  void sweep_begins(std::uint32_t shard);
  /// True: one of a group that was waiting for its turn is among these.
  bool swept(std::uint32_t shard, SteadyTime began);
  /// Reading has come to there. What it has come past in a pass later than its first may go out in order. True:
  /// something still waits for that.
  bool passed(std::uint32_t shard, const Frontier& frontier);
  /// No group of the shard goes on until it is known again which of them wait for an operator.
  void doubt_holds(std::uint32_t shard);
  /// The groups of a shard that wait for an operator. True: some wait no more, and go on once the shard has been swept:
  /// what they waited for may lie at its old place again.
  bool hold(std::uint32_t shard, std::set<std::string> groups, WallTime now);

  void rules(const ClaimRules& rules, WallTime now);
  /// What has come due by now can be handed out.
  void wake(WallTime now);
  struct Wanted {
    std::size_t max = 1;
    std::size_t bytes = 0;
    bool suspects = true;
    InFlightBound allowed = owned::kUnbounded;
  };
  struct Taken {
    Entry* entry = nullptr;  ///< until the book is used again
    bool suspect = false;
  };
  /// A suspect comes alone. Nothing goes out that lies farther behind than is allowed.
  std::vector<Taken> take(const Wanted& wanted, WallTime now);
  /// What the last `take` would have had to be allowed for the first one that was not, if there was one.
  std::optional<InFlightBound> refused() const { return refused_; }
  /// About how far anything will lie behind the head once so many more are out of each shard.
  InFlightBound expected(std::size_t more);
  void returned(const Spot& spot, const Return& what, WallTime now, SteadyTime at);

  /// Shards in which a sweep is to find again what was dropped, since this was last asked.
  std::set<std::uint32_t> take_unswept();

  /// What is in memory of all shards.
  struct Figures {
    std::size_t size = 0;
    std::size_t out = 0;
    std::size_t ready = 0;   ///< their turn may come now
    std::size_t timers = 0;  ///< they wait for their times
    std::size_t parked = 0;  ///< groups that cannot go on, and of which nothing is in memory for want of room
    bool full = false;
    std::optional<WallTime> next_timer{};
  };
  Figures figures() const;
  /// What is in memory of a shard.
  struct ShardFigures {
    std::size_t entries = 0;
    std::size_t bytes = 0;
    std::size_t out = 0;
    std::uint32_t dropped = 0;                     ///< messages that were read, lie in the table, and no longer here
    std::array<std::size_t, kPriorities> ready{};  ///< that can be handed out
    std::set<std::string> held{};                  ///< groups that wait for an operator
  };
  const ShardFigures& of(std::uint32_t shard) const;
  std::optional<WallTime> oldest_due() const;

 private:
  using Entries = std::map<Spot, Entry>;
  using Position = std::pair<WallTime, Spot>;  // within a group
  /// A group whose messages go in turns, and one after the other where the order is kept.
  struct GroupBacklog {
    std::map<Position, Entry*> waiting;
    std::size_t out = 0;
    WallTime served_at{};
    std::optional<Position> cut{};  ///< what follows from there on is not in memory
    bool parked = false;            ///< nothing of it is, as it could not go on
    Entry* offered = nullptr;
    /// What became of its head is not known: it waits until a sweep of that shard has found it, or has not.
    enum class Doubt { none, waits, swept } doubt = Doubt::none;
    std::uint32_t doubtful_shard = 0;
  };
  /// Of one priority, as its keys say.
  struct Range {
    OrphanedRange orphaned{};
    std::size_t out = 0;
    InFlightBound counted = 0;  ///< so many lie from its head up to `highest`, as was last counted
    std::string highest{};      ///< nothing that is out lies behind it
  };
  struct Shard : ShardFigures {
    bool open = true;
    std::array<Range, kPriorities> ranges{};
    std::uint32_t dropped_before = 0;  ///< of those, before the sweep that is under way
    bool doubtful = false;             ///< what was inherited has gone back to where it is to be read anew
    bool holds_known = true;
    Frontier frontier{};
    std::set<std::pair<std::string, std::string>> unsure{};  ///< the parts of keys that a frontier has, and the keys
  };
  struct SpotHash {
    std::size_t operator()(const Spot& spot) const { return std::hash<std::string>()(spot.second) + spot.first; }
  };
  /// What this host has last written, for reads that may not know it yet.
  struct Written {
    std::int64_t version = 0;
    SteadyTime at{};
  };

  bool strict() const { return rules_.order != Order::none; }
  bool in_line(const Entry& entry) const;
  std::string line_of(const Entry& entry) const;
  static Position position_of(const Entry& entry) { return {entry.candidate.due, entry.spot()}; }
  bool is_held(const std::string& group) const;
  void look_after_all();
  void place(Entry& entry, WallTime now);
  void unplace(Entry& entry);
  void offer(Entry& entry, WallTime at);
  void withdraw(Entry& entry);
  void count(Entry& entry, bool yes);
  void look_after(const std::string& name);
  void erase(Entries::iterator found);
  void go(Entry& entry, WallTime now);
  bool is_suspect(const Entry& entry) const;
  bool inherits(std::uint32_t shard) const;
  static bool is_inherited(const Entry& entry, const Shard& shard);
  static std::uint32_t places_of(const Entry& entry);
  static Range& range_of(Shard& shard, const std::string& sort);
  void count_out(const Entry& entry, bool yes);
  InFlightBound count_range(std::uint32_t shard, std::size_t priority);
  InFlightBound inherited_in(std::uint32_t shard, std::size_t priority) const;
  bool may_go(const Entry& entry, InFlightBound allowed);
  /// A message has gone out of memory, or has not come in, and still lies in the table.
  void dropped(std::uint32_t shard);
  static InFlightBound behind_dropped(InFlightBound bound, const Shard& shard);
  void keep_inheritance(std::uint32_t shard);
  bool is_stale(const Spot& spot, const Candidate& candidate, const Sight& sight) const;
  void keep_bounds();
  void make_room();
  bool may_be_parked(const std::string& name, const GroupBacklog& line) const;
  void cut_line(GroupBacklog& line, std::size_t left);
  void unpark(GroupBacklog& line);
  void remember(const Spot& spot, std::int64_t version, SteadyTime at);

  const Bounds bounds_;
  ClaimRules rules_;
  Entries entries_;
  std::map<std::uint32_t, Shard> shards_;
  std::size_t out_ = 0;
  Turns own_turns_;
  Turns& turns_;
  using Timers = std::set<std::pair<WallTime, Spot>>;
  Timers timers_;       ///< of what is in no line: any of them may be dropped
  Timers line_timers_;  ///< of what is in one, and keeps those behind it waiting
  std::size_t parked_ = 0;
  std::size_t room_at_ = bounds_.entries;  ///< with so many entries room is made again
  std::map<std::string, GroupBacklog> lines_;
  std::unordered_map<Spot, Written, SpotHash> written_;
  std::deque<std::pair<SteadyTime, Spot>> written_order_;
  std::set<std::uint32_t> unswept_;
  std::optional<InFlightBound> refused_;
};

}  // namespace sluice::queue::leased
