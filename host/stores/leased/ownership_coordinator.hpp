#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/mutex.hpp"
#include "dynamo/client.hpp"
#include "host/queue/message.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "host/stores/leased/remarks.hpp"
#include "host/stores/leased/shard_keeper.hpp"
#include "host/stores/membership.hpp"
#include "host/stores/table/table_clock.hpp"

namespace sluice::queue::leased {

/// A half of a queue as its coordinator sees it. Thread-safe. None of these calls does anything with the table.
class HalfDuty {
 public:
  HalfDuty() = default;
  HalfDuty(const HalfDuty&) = delete;
  HalfDuty& operator=(const HalfDuty&) = delete;
  virtual ~HalfDuty() = default;

  virtual const QueueAddress& address() const = 0;
  /// As many as there are where no item says how many.
  virtual std::uint32_t configured_shards() const = 0;

  /// As ShardKeeper's; `count` is how many shards messages are sent to.
  virtual std::vector<ShardKeeper::Move> look(std::span<const Ownership> read, std::uint32_t count, Membership& members,
                                              SteadyTime now) = 0;
  /// A move has been written. `left` is how far back what whoever had the shard before may have had at work goes, where
  /// it was not handed over cleanly.
  virtual void moved(const ShardKeeper::Move& move, InFlightBound left, SteadyTime now) = 0;
  /// Shards that are closing, and out of which nothing is any more.
  virtual std::vector<ShardKeeper::Move> hand_overs() = 0;
  /// The last of more shards than messages are sent to, if it is this host's and there is nothing in it.
  virtual std::optional<ShardKeeper::Move> retirement(std::uint32_t shard, SteadyTime now) = 0;
  virtual void lease_lost(SteadyTime now) = 0;

  virtual bool expects() const = 0;
  /// Something has been handed out a short time ago.
  virtual bool busy(SteadyTime now) const = 0;
  virtual bool owns_any() const = 0;
  /// How far behind the head what is out lies, in whichever of its shards that is farthest.
  virtual InFlightBound in_flight_bound() = 0;
  virtual OwnerFigures figures(SteadyTime now) const = 0;
  /// It is carried elsewhere, and nothing of it is handed out: this host wants all of it, until it leaves.
  virtual bool moves() const { return false; }
};

/// Keeps this host's lease on a table by heartbeats, learns who else lives, and sees to it that each half that this
/// process works on takes, keeps and hands over its shards. One for each table and process.
///
/// Whatever is due is done by `tend`, on the thread of whoever calls it: a thread of its own in the product, claims and
/// settlements where there is none. Thread-safe; calls that wait for the table come one after the other.
class OwnershipCoordinator {
 public:
  struct Settings {
    std::string table;
    std::string host;  ///< this host's incarnation
    Duration lease = std::chrono::seconds(10);
    std::function<void(const std::string&)> warn{};  ///< may be empty
  };
  static constexpr Duration kExpecting = std::chrono::milliseconds(200);
  static constexpr Duration kBusyGlance = std::chrono::milliseconds(300);
  static constexpr Duration kIdleGlance = std::chrono::seconds(1);
  /// A shard beyond their number is given up no sooner: senders learn it within 30 s, and a sweep has looked since.
  static constexpr Duration kSendersLearn = std::chrono::seconds(90);
  /// How much may be at work in a shard as its item says; where there is no item nothing is.
  static InFlightBound left_in(std::span<const Ownership> read, std::uint32_t shard);
  /// Of late ones so many may lie before what is at work, and nobody knows of them. Heartbeats tell of so many more.
  static constexpr InFlightBound kLateOnes = 100;
  static constexpr InFlightBound kLeastBound = 16;
  /// Where nobody has told.
  static constexpr InFlightBound kUnknownBound = kLeastBound + kLateOnes;
  /// What was needed once is announced for so long, and up to twice as long.
  static constexpr Duration kBoundKept = std::chrono::seconds(30);

  /// `clock` is this machine's, `time` what heartbeats say to people. The references outlive it.
  OwnershipCoordinator(Settings settings, dynamo::Client& client, const Clock& clock, table::TableClock& time);

  const std::string& host() const { return settings_.host; }
  /// From now on this process works on that half. It outlives `leave`.
  void join(HalfDuty& half, Deadline deadline);
  /// It works on it no more: its shards are handed over, as far as nothing is out of them. False: something still is,
  /// or could not be written; `tend` goes on with it.
  bool leave(HalfDuty& half, Deadline deadline);
  /// It is not there any more.
  void forget(HalfDuty& half);

  /// Does what is due. With `wait`, waits for a call that is under way; otherwise that one will do.
  void tend(bool wait, Deadline deadline);
  /// A shard may be handed over now.
  void nudge() { due_at_ = SteadyTime::min().time_since_epoch().count(); }
  SteadyTime due_at() const { return SteadyTime(SteadyTime::duration(due_at_.load())); }

  /// Something may be handed out, and what this host holds is its own.
  bool may_start();
  bool holds();
  /// What is at work here is to lie as far behind the head as that. True: everybody can know it, so that it may.
  bool announce(InFlightBound bound, Deadline deadline);
  /// How far it may, as everybody can know.
  InFlightBound announced() const;
  /// Until when that is so if no further heartbeat can be written; the distant past where it is not.
  SteadyTime holds_until();
  /// Why its last heartbeat could not be written, or what its table says of hosts and shards not be read.
  std::optional<dynamo::Error> trouble() const;
  /// Where this host listens for rings, as its heartbeats say from now on; empty: nowhere. False: the one that was to
  /// tell it at once could not be written.
  bool listen_at(const std::string& bell, Deadline deadline);

 private:
  struct Duty {
    HalfDuty* half = nullptr;
    bool leaving = false;
    bool moved = false;  ///< somebody carries it elsewhere
    std::string name;
    std::string partition;
    Shards numbers{};
    std::uint32_t last_count = 0;
    SteadyTime counted_at{};  ///< since then the number of shards is what it is
  };

  /// False: the lease has gone.
  bool check_lease() SLUICE_REQUIRES(state_);
  SteadyTime lease_now();
  void lose_all() SLUICE_REQUIRES(turn_);
  void do_due(Deadline deadline) SLUICE_REQUIRES(turn_);
  bool beat(Deadline deadline) SLUICE_REQUIRES(turn_);
  void lose_to_a_mark() SLUICE_REQUIRES(turn_);
  HostBeat own_beat(SteadyTime now, InFlightBound bound) const SLUICE_REQUIRES(turn_);
  InFlightBound bound_to_announce() SLUICE_REQUIRES(turn_);
  void glance(Deadline deadline) SLUICE_REQUIRES(turn_);
  void look(Deadline deadline) SLUICE_REQUIRES(turn_);
  /// Whom the plan gives what. The heartbeats were asked for at `asked`, after the page was there.
  bool look_at(Duty& duty, const OwnershipPage& page, SteadyTime asked, Deadline deadline) SLUICE_REQUIRES(turn_);
  std::optional<OwnershipPage> read_ownership(Duty& duty, Deadline deadline) SLUICE_REQUIRES(turn_);
  /// False: somebody else has just done so.
  bool write_numbers(const Duty& duty, OwnershipPage& page, Deadline deadline) SLUICE_REQUIRES(turn_);
  void tell_of_movers(Duty& duty, SteadyTime now) SLUICE_REQUIRES(turn_);
  void tell_of_another_number(const Duty& duty) SLUICE_REQUIRES(turn_);
  /// How many ownership items count: those beyond the number of shards as long as something may lie there.
  std::uint32_t learn_numbers(Duty& duty, const OwnershipPage& page) SLUICE_REQUIRES(turn_);
  bool write_moves(Duty& duty, const std::vector<ShardKeeper::Move>& moves, const OwnershipPage& read, bool drained,
                   Deadline deadline) SLUICE_REQUIRES(turn_);
  InFlightBound left_by(const ShardKeeper::Move& move) const SLUICE_REQUIRES(turn_);
  bool hand_over(Duty& duty, Deadline deadline) SLUICE_REQUIRES(turn_);
  std::optional<std::vector<Heartbeat>> read_beats(bool consistent, Deadline deadline) SLUICE_REQUIRES(turn_);
  std::optional<std::vector<dynamo::Item>> read_partition(const std::string& partition, bool consistent,
                                                          Deadline deadline) SLUICE_REQUIRES(turn_);
  void clear_up(Deadline deadline) SLUICE_REQUIRES(turn_);
  void tell(const std::string& what, const dynamo::Error& error);
  Duration glance_pause(SteadyTime now) const SLUICE_REQUIRES(turn_);

  // Fixed after construction.
  const Settings settings_;
  dynamo::Client& client_;
  const Clock& clock_;
  table::TableClock& time_;
  Remarks remarks_;  // synchronises itself

  Mutex turn_;
  // Guarded by turn_.
  std::vector<Duty> duties_ SLUICE_GUARDED_BY(turn_);
  Membership members_ SLUICE_GUARDED_BY(turn_);
  std::map<std::string, HostBeat> beats_ SLUICE_GUARDED_BY(turn_);  ///< as they were last read
  std::set<std::string> owners_ SLUICE_GUARDED_BY(turn_);           ///< as the last look has found them
  std::string seen_ SLUICE_GUARDED_BY(turn_);                       ///< who works on what, as a text to be compared
  std::int64_t counter_ SLUICE_GUARDED_BY(turn_) = 0;
  bool declared_dead_ SLUICE_GUARDED_BY(turn_) = false;  ///< by somebody else, since the last heartbeat
  SteadyTime beat_at_ SLUICE_GUARDED_BY(turn_){};        ///< on the lease's clock
  SteadyTime look_at_ SLUICE_GUARDED_BY(turn_){};
  SteadyTime glance_at_ SLUICE_GUARDED_BY(turn_){};
  std::string bell_ SLUICE_GUARDED_BY(turn_);

  mutable Mutex state_;
  // Guarded by state_.
  LeaseClock lease_clock_ SLUICE_GUARDED_BY(state_);
  OwnLease lease_ SLUICE_GUARDED_BY(state_);
  Duration ahead_at_beat_ SLUICE_GUARDED_BY(state_){};  ///< what the lease's clock was ahead when the lease began
  bool lost_ SLUICE_GUARDED_BY(state_) = false;         ///< the lease has gone, and the halves have not been told yet
  std::optional<dynamo::Error> beat_trouble_ SLUICE_GUARDED_BY(state_);
  std::optional<dynamo::Error> look_trouble_ SLUICE_GUARDED_BY(state_);
  InFlightBound announced_ SLUICE_GUARDED_BY(state_) = 0;
  InFlightBound needed_ SLUICE_GUARDED_BY(state_) = 0;         ///< in the time that runs
  InFlightBound needed_before_ SLUICE_GUARDED_BY(state_) = 0;  ///< and in the one before
  SteadyTime needed_since_ SLUICE_GUARDED_BY(state_){};

  std::atomic<SteadyTime::rep> due_at_ = 0;
};

}  // namespace sluice::queue::leased
