#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/mutex.hpp"
#include "host/stores/owned/host_lease.hpp"
#include "host/stores/owned/ownership_records.hpp"
#include "host/stores/owned/remarks.hpp"

namespace sluice::queue::owned {

/// Who works on the shards of a half of a queue that this process owns, as the coordinator tells it. Thread-safe. None
/// of these calls but `spare_time` waits for a store, and none calls the coordinator.
class ShardHolder : boost::noncopyable {
 public:
  virtual ~ShardHolder() = default;

  virtual const QueueAddress& address() const = 0;

  struct Shard {
    std::uint32_t number = 0;
    std::int64_t epoch = 0;
    bool closing = false;  ///< nothing more is to go out of it
    // Of one that it has not had before:
    InFlightBound left = 0;  ///< how far back what owners before may have had at work goes
    bool written_before = false;
  };
  /// These are this host's now, of so many; whatever else it had is lost, with all that is out of it.
  virtual void own(std::span<const Shard> shards, std::uint32_t all) = 0;
  /// What of that shard is left in doubt to whoever gets it now. Nothing: something is out of it still.
  virtual std::optional<InFlightBound> left_in(std::uint32_t shard) = 0;
  /// There is nothing in it.
  virtual bool is_empty(std::uint32_t shard) const = 0;
  /// Something has been handed out a short time ago.
  virtual bool busy() const = 0;
  /// How far behind the head what is out lies, in whichever of its shards that is farthest.
  virtual InFlightBound in_flight_bound() = 0;
  virtual OwnerFigures figures() const = 0;
  /// Of the dead letters in its shards of a standard half.
  virtual OwnerFigures dead_letters() const { return {}; }
  /// Puts both into a heartbeat, in the place of what it says.
  void put_figures(Heartbeat& beat) const {
    beat.figures.insert_or_assign(half_name(address()), figures());
    if (const OwnerFigures dead = dead_letters(); dead.shards > 0) {
      beat.figures.insert_or_assign(dead_letters_name(address().queue), dead);
    }
  }
  /// It is carried elsewhere, and nothing of it is handed out: this host wants all of it, until it leaves.
  virtual bool moves() const { return false; }
  /// Does what may wait; heartbeats do so meanwhile.
  virtual void spare_time(Deadline /*deadline*/) {}
};

/// Keeps this host's lease on a table by heartbeats, learns who else lives, and sees to it that this process takes,
/// keeps and hands over its shards of each half that it works on. One for each table and process.
///
/// Whatever is due is done on a thread of its own, or by `tend` where there is none. Thread-safe; calls that wait for
/// the table come one after the other.
class OwnershipCoordinator {
 public:
  struct Settings {
    std::string table;  ///< for messages
    std::string host;   ///< this host's incarnation
    Duration lease = std::chrono::seconds(10);
    /// So that housekeeping goes on while all others are busy. False: claims and settlements see to it.
    bool own_thread = true;
  };
  static constexpr Duration kExpecting = std::chrono::milliseconds(200);
  static constexpr Duration kBusyGlance = std::chrono::milliseconds(300);
  static constexpr Duration kIdleGlance = std::chrono::seconds(1);
  /// A shard beyond their number is given up no sooner: senders learn it within 30 s, and a sweep has looked since.
  static constexpr Duration kSendersLearn = std::chrono::seconds(90);

  /// `clock` is this machine's. The references outlive it.
  OwnershipCoordinator(Settings settings, OwnershipRecords& records, Remarks& remarks, const Clock& clock);

  const std::string& host() const { return settings_.host; }
  /// What this host may rely on; lives as long as the coordinator.
  HostLease& lease() { return lease_; }

  /// From now on this process works on that half, which outlives the coordinator's thread. What cannot be done now is
  /// done later.
  void join(ShardHolder& holder);
  /// It works on it no more: hands its shards over, again and again until that has succeeded: true. False: it took too
  /// long, or `in_vain`, which is asked after each try, has said that there is no use in another one; the housekeeping
  /// goes on with it until its shards are others'.
  bool leave(ShardHolder& holder, const std::function<bool()>& in_vain);
  /// It has left: nothing more is done for it, or from when on nothing is in this host's name any more.
  void forget(ShardHolder& holder);
  /// Does what is due, where no thread does.
  void tend(Deadline deadline);
  /// When `tend` is to be called again; nothing: a thread does so.
  std::optional<SteadyTime> due_at() const;

  /// What is at work here is to lie as far behind the head as that. True: everybody can know it, so that it may.
  bool announce(InFlightBound bound, Deadline deadline);
  /// Where this host listens for rings, as its heartbeats say from now on; empty: nowhere. False: the one that was to
  /// tell it at once could not be written.
  bool listen_at(const std::string& bell, Deadline deadline);

 private:
  using Move = PartKeeper::Move;

  struct Duty {
    ShardHolder* holder = nullptr;
    std::string name;
    PartKeeper keeper;
    bool leaving = false;
    std::string mover{};      ///< who carries it elsewhere; empty: nobody
    std::uint32_t all = 0;    ///< shards that count
    std::uint32_t count = 0;  ///< messages are sent to so many
    SteadyTime counted_at{};  ///< since then
  };

  void run(const std::stop_token& stop);
  /// With `wait`, waits for a call that is under way; otherwise that one will do.
  void take_turn(bool wait, Deadline deadline);
  bool try_to_leave(ShardHolder& holder, Deadline deadline);
  std::vector<Duty>::iterator duty_of(const ShardHolder& holder) SLUICE_REQUIRES(turn_);
  void lose_all() SLUICE_REQUIRES(turn_);
  void do_due(Deadline deadline) SLUICE_REQUIRES(turn_);

  bool beat(Deadline deadline) SLUICE_REQUIRES(turn_);
  Heartbeat own_beat(InFlightBound bound) const SLUICE_REQUIRES(turn_);
  void lose_to_a_mark() SLUICE_REQUIRES(turn_);

  void glance(Deadline deadline) SLUICE_REQUIRES(turn_);
  void look(Deadline deadline) SLUICE_REQUIRES(turn_);
  /// Whom the plan gives what. The heartbeats were asked for at `asked`, after the shards. False: something did not go
  /// as it should, so that it is worth another look.
  bool follow_plan(Duty& duty, const OwnershipLook& found, SteadyTime asked, Deadline deadline) SLUICE_REQUIRES(turn_);
  void tell_of_movers(Duty& duty, SteadyTime now) SLUICE_REQUIRES(turn_);
  Duration glance_pause() const SLUICE_REQUIRES(turn_);
  /// `found`: who has what, of each half.
  void clear_up(const std::vector<Heartbeat>& beats, const std::vector<std::optional<OwnershipLook>>& found,
                Deadline deadline) SLUICE_REQUIRES(turn_);

  std::vector<Move> hand_overs(Duty& duty) const SLUICE_REQUIRES(turn_);
  bool write_moves(Duty& duty, const std::vector<Move>& moves, Deadline deadline) SLUICE_REQUIRES(turn_);
  void move_written(Duty& duty, const Move& move) SLUICE_REQUIRES(turn_);
  InFlightBound left_by(const Move& move) const SLUICE_REQUIRES(turn_);
  /// Tells what the keeper has by now. `read` and `written` say what is left in a shard that it has not had before.
  void tell_holder(Duty& duty, std::span<const Ownership> read, const Move* written) SLUICE_REQUIRES(turn_);

  // Fixed after construction.
  const Settings settings_;
  OwnershipRecords& records_;
  Remarks& remarks_;
  const Clock& clock_;

  HostLease lease_;  // synchronises itself

  Mutex turn_;
  // Guarded by turn_.
  std::vector<Duty> duties_ SLUICE_GUARDED_BY(turn_);
  Membership members_ SLUICE_GUARDED_BY(turn_);
  std::string seen_ SLUICE_GUARDED_BY(turn_);  ///< who works on what, as a text to be compared
  std::int64_t counter_ SLUICE_GUARDED_BY(turn_) = 0;
  bool declared_dead_ SLUICE_GUARDED_BY(turn_) = false;  ///< by somebody else, since the last heartbeat
  SteadyTime beat_at_ SLUICE_GUARDED_BY(turn_){};        ///< on the lease's clock
  SteadyTime look_at_ SLUICE_GUARDED_BY(turn_){};
  SteadyTime glance_at_ SLUICE_GUARDED_BY(turn_){};
  std::string bell_ SLUICE_GUARDED_BY(turn_);

  mutable Mutex state_;  // taken after turn_
  Condition napped_;
  std::jthread thread_ SLUICE_GUARDED_BY(state_);
};

}  // namespace sluice::queue::owned
