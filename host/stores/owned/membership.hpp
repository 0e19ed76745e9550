#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "base/clock.hpp"

namespace sluice::queue::owned {

/// How many messages from the head of a part, of each priority, may be at work: nothing that lies farther behind is.
/// Messages are counted in the order of their keys, whatever order they were handed out in and whatever time they wait
/// for, so that whoever takes the part counts the same. 0: nothing is at work.
using InFlightBound = std::uint32_t;

/// As good as no bound.
inline constexpr InFlightBound kUnbounded = 1'000'000;

/// What a host knows of its shards of a half, or of the dead letters in its shards of a standard half. A value.
struct OwnerFigures {
  std::uint64_t ready = 0;
  std::uint64_t delayed = 0;
  std::uint64_t in_flight = 0;
  std::optional<WallTime> oldest_due{};
  std::uint32_t unread = 0;  ///< shards of which more lies in the table, or may by now, than has been read
  Duration looked_ago{};     ///< at the others, the longest time
  std::uint32_t shards = 0;
  std::uint32_t in_use = 0;  ///< so many somebody has to own; 0: it does not know yet

  friend bool operator==(const OwnerFigures&, const OwnerFigures&) = default;
};

/// What a host tells of itself every few seconds. A value.
struct Heartbeat {
  std::string host;                  ///< its incarnation: a host that starts again is another one
  std::int64_t counter = 0;          ///< grows with each
  Duration lease{};                  ///< how long what it holds stays its own without another one
  bool leaving = false;              ///< it drains, and takes nothing more
  std::set<std::string> works_on{};  ///< what it wants its share of, by name
  std::set<std::string> moves{};     ///< of that: what it carries elsewhere, and wants all of
  bool ended = false;                ///< its machine knows for certain that it is no more
  bool settled = false;              ///< then: nothing that it had handed out is in doubt

  InFlightBound in_flight_bound = 0;  ///< nothing of a part is at work in it beyond that; 0: it does not say
  std::string bell{};                 ///< where it listens for rings; empty: nowhere
  std::map<std::string, OwnerFigures> figures{};  ///< by what it works on, and of dead letters
  std::optional<WallTime> written_at{};           ///< by its own clock: for people and figures, and never for a lease
};

/// Which hosts live, as one of them can know it: by how long ago, on its own monotonic clock, it saw each one's counter
/// move. No host's wall clock is compared with another's. Not thread-safe.
class Membership {
 public:
  /// `otherwise` is the lease of a host that holds something but tells nothing of itself.
  explicit Membership(Duration otherwise) : otherwise_(otherwise) {}

  /// What a consistent read of all heartbeats has found; `now` is when its answer was there. A host that is not among
  /// them any more is as one whose counter stands still.
  void saw(std::span<const Heartbeat> beats, SteadyTime now);
  /// Something is held by that host.
  void met(const std::string& host, SteadyTime now);

  /// False once a whole lease of that host has passed since its counter was first seen as it is, or since it was met;
  /// at once for one that has ended. One that nobody has met does not live.
  bool alive(const std::string& host, SteadyTime now) const;
  /// It has ended, and its machine has settled all that it had handed out.
  bool settled(const std::string& host) const;
  /// It has been dead since then at the latest.
  bool dead_since(const std::string& host, SteadyTime then) const;
  /// Those that live, stay and work on it. Where one of them carries it elsewhere: those that do, and nobody else.
  std::set<std::string> workers(const std::string& on, SteadyTime now) const;
  /// That host, dead or alive, carried it elsewhere: it has handed out nothing of it.
  bool moved(const std::string& host, const std::string& what) const;
  /// It has told nothing for two thirds of its lease, so that it may start nothing any more.
  bool silent(const std::string& host, SteadyTime now) const;
  /// Another incarnation of the same host ended without a word, or works on, and this one has yet to show that it
  /// stays: by a second heartbeat where the other one works, by a whole lease where nothing is heard of it.
  bool on_probation(const std::string& host, SteadyTime now) const;
  /// What it told last; null: nothing yet.
  const Heartbeat* last_of(const std::string& host) const;
  /// The farthest that any host has ever told of, forgotten ones too.
  InFlightBound most_in_flight() const { return most_in_flight_; }
  /// When the next of those that live will be taken for dead, if nothing is heard of it.
  std::optional<SteadyTime> next_death(SteadyTime now) const;

 private:
  struct Sight {
    Heartbeat beat;
    SteadyTime met_at{};
    SteadyTime moved_at{};
    bool listed = false;  ///< the last read has found it
    SteadyTime dead_at() const { return beat.ended ? moved_at : moved_at + beat.lease; }
  };

  void forget_the_dead(SteadyTime now);

  const Duration otherwise_;
  std::map<std::string, Sight> hosts_;
  InFlightBound most_in_flight_ = 0;
};

/// How long a host may rely on its own lease: counted from before the heartbeat that granted it was written, so that it
/// ends here before it ends for anybody else. It has a clock of its own, monotonic, that goes on while the machine
/// sleeps, as leases do for everybody else: whenever the wall clock has gained on the machine's monotonic clock, that
/// is added. Not thread-safe.
class OwnLease {
 public:
  /// The clock is this machine's, and outlives the lease.
  OwnLease(Duration lease, const Clock& clock) : lease_(lease), clock_(clock) {}

  /// The time on its own clock.
  SteadyTime now();
  /// How far that is ahead of the machine's monotonic clock by now.
  Duration ahead() const { return ahead_; }

  /// A heartbeat that was begun at `began`, by its own clock, has been written. False: the lease before had ended
  /// meanwhile, so that others may have taken this host for dead; what it held is not its own any more.
  [[nodiscard]] bool renewed(SteadyTime began);
  /// It has been taken away: somebody has declared this host dead.
  void gone() { began_.reset(); }

  /// How long it lasts without another heartbeat: not above zero once it has ended; nothing: there is none.
  std::optional<Duration> left();
  /// What this host holds is its own.
  bool holds() { return left() > Duration::zero(); }
  /// Something may still be started under it: not in the last third of a lease that nothing has renewed.
  bool may_start() { return left() > lease_ - lease_ / 3 * 2; }

 private:
  const Duration lease_;
  const Clock& clock_;
  std::optional<Duration> between_;  ///< from the monotonic clock to the wall clock, as was last seen
  Duration ahead_{};
  std::optional<SteadyTime> began_;
};

}  // namespace sluice::queue::owned
