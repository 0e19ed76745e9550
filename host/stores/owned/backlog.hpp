#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/source.hpp"
#include "host/stores/core/message_state.hpp"
#include "host/stores/owned/ownership.hpp"
#include "host/stores/owned/part_reader.hpp"
#include "host/stores/owned/priority_scheduler.hpp"
#include "host/stores/owned/sort_keys.hpp"

namespace sluice::queue::owned {

/// What of one priority of a part owners before may have had at work when they died: everything up to the key that
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
  /// A message of that key that is due then may be concerned.
  bool concerns(const std::string& sort, WallTime due) const {
    return any() && due <= until_ && (counted_ < bound_ || sort <= counted_to_);
  }

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

/// A message as it was read: what the rules ask of it.
struct Found {
  std::string sort;
  core::MessageState state{};  ///< sent at the time of its key
  std::size_t bytes = 0;
  bool writes_claim = false;             ///< its claim is to be written before it goes out, suspect or not
  std::string odd{};                     ///< why it cannot be handed out: what of it nobody understands; empty: nothing
  std::shared_ptr<const void> record{};  ///< what the driver keeps of it for itself

  WallTime due() const { return state.sent_at; }
  /// When its turn may come, and whether it has.
  WallTime due_at() const { return std::max(due(), state.hidden_until.value_or(due())); }
  bool is_due(WallTime now) const { return due() <= now && (!state.hidden_until || *state.hidden_until < now); }
};

/// A message in memory.
struct Entry : Found {
  std::uint32_t part = 0;
  bool out = false;
  bool known = false;      ///< it has come back to this host: nothing that was before concerns it
  bool suspect = false;    ///< it has gone out as one
  bool inherited = false;  ///< it has gone out as one that an owner who died may have had
  bool sure = false;       ///< nothing can be missing that would have to go before it in its group
  std::uint64_t pass = 0;  ///< of its part, that found it first
  SteadyTime seen_at{};    ///< when the read began that last found it, or it came back
  bool timed = false;      ///< it waits for its time
  bool counted = false;    ///< among what can be handed out
  std::optional<Turn> offered{};

  Spot spot() const { return {part, sort}; }
  /// It was moved there, at any time, and so takes nobody's place.
  bool in_front() const { return due() < kFrontEnd; }
};

/// What became of a message that was out.
struct Return {
  enum class Kind {
    gone,     ///< removed, or dead-lettered
    back,     ///< it waits again, as its record says now
    unknown,  ///< its record is otherwise than was thought: it is read anew
  };
  Kind kind = Kind::gone;
  core::MessageState state{};  ///< of the record now; of one that is gone, or unknown: as it was
};

/// Remembers what has been read of the parts that this host owns: what can be handed out, what waits for its time, and
/// what is out. Decides what is handed out next: by priority, in turns by group, in order where that is asked for.
///
/// Memory is bounded: what waits for a time far ahead, what follows in a group that cannot go on, and at last all of
/// such a group, is dropped beyond a bound and found again by a sweep. Step functions. Not thread-safe.
class Backlog {
 public:
  struct Bounds {
    std::size_t timers = 10'000;
    std::size_t entries = 50'000;
  };
  Backlog() : Backlog(Bounds()) {}
  /// Whose turn it was, where that outlives a backlog.
  struct Turns {
    PriorityScheduler priorities;
    std::map<std::string, WallTime> served;  ///< when a group had its last one
  };
  /// With `turns`, which outlive it, those before go on; nobody else uses them meanwhile.
  explicit Backlog(Bounds bounds, Turns* turns = nullptr)
      : bounds_(bounds), turns_(turns == nullptr ? own_turns_ : *turns) {}

  /// A part is this host's. What lies there may have been in the hands of an owner who died, as far as `bound` goes
  /// and where it was due by `until`. One that was closed stays after all: what was dropped is read anew.
  void take_part(std::uint32_t part, InFlightBound bound, WallTime until);
  /// Nothing more goes out of it.
  void close_part(std::uint32_t part);
  /// It is not this host's any more; returns what is out of it.
  std::vector<Spot> lose_part(std::uint32_t part);
  /// How far what may have been at work in an owner who died goes in it, with what is out of it; 0: there is no such
  /// thing. Whoever has it next would have to know, too.
  InFlightBound left_in(std::uint32_t part) const;
  /// How far behind the head what is out lies, in whichever part that is farthest.
  InFlightBound in_flight_bound() const;

  /// A read that began then has found a message. One that was read before this host's own last write of it says nothing
  /// new.
  struct Sight {
    SteadyTime began{};
    bool consistent = false;
    WallTime now{};
    std::uint64_t pass = 0;
  };
  /// True: it is news.
  bool admit(std::uint32_t part, Found found, const Sight& sight);
  /// A sweep begins, which brings back what was dropped; once it has ended, what it has not seen is not there any more.
  void sweep_begins(std::uint32_t part);
  /// How far reading has come.
  struct Progress {
    Frontier frontier{};                ///< what it has come past in a pass later than its first may go out in order
    bool to_the_end = false;            ///< nothing is left to be read of what was due when the part was taken
    std::optional<SteadyTime> swept{};  ///< a sweep that began then has come to its end
  };
  struct News {
    bool unsure = false;    ///< something waits for the frontier
    bool vanished = false;  ///< one of a group that was waiting for its turn is not there any more
  };
  /// A page has been taken up.
  News read(std::uint32_t part, const Progress& progress);
  /// No group of the part goes on until it is known again which of them wait for an operator.
  void doubt_holds(std::uint32_t part);
  /// The groups of a part that wait for an operator. True: some wait no more, and go on once the part has been swept:
  /// what they waited for may lie at its old place again.
  bool hold(std::uint32_t part, std::set<std::string> groups, WallTime now);

  void rules(const ClaimRules& rules, WallTime now);
  const ClaimRules& rules() const { return rules_; }
  /// What has come due by now can be handed out.
  void wake(WallTime now);
  struct Wanted {
    std::size_t max = 1;
    std::size_t bytes = 0;
    bool suspects = true;
    InFlightBound allowed = kUnbounded;
  };
  struct Claim {
    std::vector<Entry*> entries;             ///< until the backlog is used again
    std::optional<InFlightBound> refused{};  ///< what would have had to be allowed for the first one that was not
  };
  /// A suspect comes alone. Nothing goes out that lies farther behind than is allowed.
  Claim take(const Wanted& wanted, WallTime now);
  /// About how far anything will lie behind the head once so many more are out of each part.
  InFlightBound expected(std::size_t more) const;
  void returned(const Spot& spot, const Return& what, WallTime now, SteadyTime at);

  /// Parts in which a sweep is to find again what was dropped, since this was last asked.
  std::set<std::uint32_t> take_unswept() { return std::exchange(unswept_, {}); }

  /// What is in memory of all parts.
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
  /// What is in memory of a part.
  struct PartFigures {
    bool open = false;  ///< what lies in it may go out
    std::size_t entries = 0;
    std::size_t bytes = 0;
    std::size_t out = 0;
    std::uint32_t dropped = 0;                     ///< messages that were read, lie there, and no longer here
    std::array<std::size_t, kPriorities> ready{};  ///< that can be handed out
    std::set<std::string> held{};                  ///< groups that wait for an operator
  };
  const PartFigures& of(std::uint32_t part) const;
  std::optional<WallTime> oldest_due() const;

 private:
  using Entries = std::map<Spot, Entry>;
  using Position = std::pair<WallTime, Spot>;  // within a group
  using Timers = std::set<std::pair<WallTime, Spot>>;
  /// A group whose messages go in turns, and one after the other where the order is kept.
  struct GroupBacklog {
    std::map<Position, Entry*> waiting;
    std::size_t out = 0;
    WallTime served_at{};
    std::optional<Position> cut{};  ///< what follows from there on is not in memory
    bool parked = false;            ///< nothing of it is, as it could not go on
    Entry* offered = nullptr;
    /// What became of its head is not known: it waits until a sweep of that part has found it, or has not.
    enum class Doubt { none, waits, swept } doubt = Doubt::none;
    std::uint32_t doubtful_part = 0;

    void doubt_in(std::uint32_t part) {
      doubt = Doubt::waits;
      doubtful_part = part;
    }
    bool over() const { return waiting.empty() && out == 0 && !cut && doubt == Doubt::none; }
  };
  using Lines = std::map<std::string, GroupBacklog>;
  /// Of one priority, as its keys say.
  struct Range {
    OrphanedRange orphaned{};
    std::set<std::string_view> out{};  ///< what is out
    InFlightBound reach = 0;           ///< so many lie in memory behind the front, up to the last that is out
  };
  struct Part : PartFigures {
    std::array<Range, kPriorities> ranges{};
    std::uint32_t dropped_before = 0;  ///< of those, before the sweep that is under way
    bool doubtful = false;             ///< what was inherited has gone back to where it is to be read anew
    bool holds_known = true;
    Frontier frontier{};
    std::set<std::pair<std::string, std::string>> unsure{};  ///< the places in time that a frontier has, and the keys
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
  const std::string& line_of(const Entry& entry) const;
  /// Null: it is in no line, or nobody waits or is out in it.
  GroupBacklog* line_with(const Entry& entry);
  Timers& timers_of(const Entry& entry) { return strict() && in_line(entry) ? line_timers_ : timers_; }
  static Position position_of(const Entry& entry) { return {entry.due(), entry.spot()}; }
  bool is_held(const std::string& group) const;
  bool waits(const std::string& name, const GroupBacklog& line, const Entry& head) const;
  void place(Entry& entry, WallTime now);
  void unplace(Entry& entry);
  void offer(Entry& entry, WallTime at);
  void withdraw(Entry& entry);
  void count(Entry& entry, bool yes);
  void look_after(const std::string& name);
  void look_after_all();
  void erase(Entries::iterator found);
  /// It goes out of memory, and still lies where it was read.
  void drop(Entries::iterator found);
  void go(Entry& entry, WallTime now);
  bool is_suspect(const Entry& entry) const;
  bool inherits(std::uint32_t part) const;
  bool is_inherited(const Entry& entry) const;
  Range& range_of(const Entry& entry);
  InFlightBound beyond_reach(const Entry& entry);
  void count_out(const Entry& entry, bool yes);
  void count_in(const Entry& entry, bool yes);
  static InFlightBound reach_of(const Part& part, InFlightBound reach, std::size_t out);
  InFlightBound inherited_in(std::uint32_t part, std::size_t priority) const;
  bool is_stale(const Spot& spot, const Found& found, const Sight& sight) const;
  bool come_past(std::uint32_t part, const Frontier& frontier);
  bool sweep_ended(std::uint32_t part, SteadyTime began);
  void forget_inherited(std::uint32_t part);
  void keep_bounds();
  void make_room();
  void cut_line(GroupBacklog& line, std::size_t left);
  void uncut(GroupBacklog& line);
  void unpark(GroupBacklog& line);
  void remember(const Spot& spot, std::int64_t version, SteadyTime at);

  const Bounds bounds_;
  ClaimRules rules_;
  Entries entries_;
  std::map<std::uint32_t, Part> parts_;
  std::size_t out_ = 0;
  Turns own_turns_;
  Turns& turns_;
  Timers timers_;       ///< of what is in no line: any of them may be dropped
  Timers line_timers_;  ///< of what is in one, and keeps those behind it waiting
  std::size_t parked_ = 0;
  std::size_t room_at_ = bounds_.entries;  ///< with so many entries room is made again
  Lines lines_;
  std::unordered_map<Spot, Written, SpotHash> written_;
  std::deque<std::pair<SteadyTime, Spot>> written_order_;
  std::set<std::uint32_t> unswept_;
  InFlightBound refused_ = 0;  ///< by the last `take`
};

}  // namespace sluice::queue::owned
