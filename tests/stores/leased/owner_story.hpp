#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/stores/leased/owner_world.hpp"

namespace sluice::test {

/// What really lies in the table and what hosts have been handed, and whether that agrees with what is promised. It
/// watches the table from outside and asks no host.
class OwnerTruth {
 public:
  explicit OwnerTruth(OwnerWorld& world);

  void sent(const std::string& id, const std::string& group);
  /// A request of that host goes off.
  void asks(const OwnerHost& host) { asked_at_[host.name] = world_.clock.steady_now(); }
  /// The handler of a host begins. `handed` is what it was given; whether its end is to be known beside that.
  void begins(OwnerHost& host, const queue::Delivery& handed);
  /// A host is about to write that end.
  void ending(const OwnerHost& host, const queue::Delivery& handed, queue::CompletionAction action);
  void ended(const OwnerHost& host, const queue::Delivery& handed, queue::CompletionAction action);
  /// A host ended without a word while that was at work in it.
  void crashed(const OwnerHost& host, const queue::Delivery& handed);

  // An operator.

  /// Another body under the next version, if the message is still there.
  void edit(const std::string& id);
  /// Sees to the dead letters that keep their groups waiting.
  void release_groups();

  /// Of the standard half.
  bool is_there(const std::string& id) const { return there_.contains(id); }
  std::size_t left() const { return there_.size(); }
  bool started(const std::string& id) const { return known_.at(id).started; }
  /// Each message has come to an end that somebody has asked for.
  void close();
  const std::string& wrong() const { return wrong_; }
  int crashes_checked() const { return crashes_checked_; }

 private:
  struct Known {
    std::string group;
    int edits = 0;
    bool started = false;
    std::string last_host;
    bool ended_by_host = false;                 ///< somebody who had it has asked for its end
    std::optional<std::int64_t> crash_version;  ///< of its record, when its host crashed
  };

  void see(const std::string& who, const dynamo::Item* before, const dynamo::Item* after);
  void see_beat(const std::string& who);
  void see_owner(const std::string& who, const dynamo::Item& before);
  void check_group(const OwnerHost& host, const std::string& id, const Known& known);
  void check_crash(const OwnerHost& host, const queue::Delivery& handed, Known& known);
  void say(const std::string& what);

  OwnerWorld& world_;
  std::map<std::string, Known> known_;
  std::map<std::string, dynamo::Item> there_;                 ///< records of the standard half by id
  std::map<std::string, dynamo::Item> dead_;                  ///< of the DLQ
  std::map<std::string, std::set<std::string>> in_group_;     ///< ids by group, in the order of their keys
  std::map<std::string, std::map<std::string, int>> ending_;  ///< by id: who has asked for its end
  std::map<std::string, SteadyTime> asked_at_;                ///< when a host's last request went off
  std::map<std::string, SteadyTime> beat_at_;           ///< when a host's heartbeat last reached the table in time
  std::map<std::string, SteadyTime> leased_since_;      ///< since when a host's lease has not ended
  std::map<std::string, SteadyTime> changed_hands_at_;  ///< when a shard last did
  std::string wrong_;
  int crashes_checked_ = 0;
};

/// Owners that are killed, hang, sleep, are cut off and restarted on a table that fails, from a seed; then there is
/// peace, in which all that is left has to be worked off.
class OwnerStory {
 public:
  explicit OwnerStory(std::uint64_t seed);
  OwnerStory(const OwnerStory&) = delete;
  OwnerStory& operator=(const OwnerStory&) = delete;
  ~OwnerStory();

  /// What went wrong; empty: nothing.
  std::string run();
  /// Messages that were handed out after their removal was confirmed, which a shard that changes hands allows.
  int doubles() const { return doubles_; }
  int crashes_checked() const { return truth_.crashes_checked(); }
  /// What went on, by its name: what was done to hosts, and the model's requests, faults and errors.
  std::map<std::string, std::uint64_t> happened() const;

 private:
  struct Desk {
    OwnerHost* host = nullptr;
    std::vector<queue::Delivery> held;
    SteadyTime asleep_until{};
    SteadyTime cut_until{};
  };
  /// What a seed makes of it beside the faults of the table.
  struct Mix {
    bool ordered = false;
    bool holds = false;   ///< a dead letter keeps its group waiting
    bool plain = false;   ///< no delays and retries, so that whoever takes a shard meets what was out of it first
    bool sweeps = false;  ///< a backlog that stays, behind which slow writers put something
    bool edits = false;
    bool stream = false;  ///< producers send all the time, into pages that are cut
    bool loops = false;   ///< a host without a state folder crashes again and again
    bool wipes = false;   ///< ownership items are removed, or the table is made again
    bool crowd = false;   ///< hundreds wait for another attempt, before and behind what is at work
  };

  /// Sends to a group, and waits for each answer; by a clock that is behind, and its puts may take a while.
  struct Producer {
    Duration behind{};
    std::size_t left = 0;
    std::optional<WallTime> stamp{};
    WallTime last{};
    SteadyTime lands_at{};
  };

  static WorldPlan plan_of(std::uint64_t seed);
  static Mix mix_of(std::uint64_t seed);
  void troubles();
  void peace();
  void watch_slow_writers();
  void watch_a_crash_loop();
  void watch_items_vanish();
  void calm(Duration span);
  std::set<std::string> send_to_each_shard();
  void demand_begun(const std::set<std::string>& ids, const std::string& after);
  void begin_host(Desk& desk);
  void interleave(OwnerHost& host);
  void send();
  /// Producers whose put has been answered send the next one.
  void produce();
  void gather_a_crowd();
  void begin_a_stream();
  void fail_all(Desk& desk);
  void act(Desk& desk);
  void crash(Desk& desk);
  void restart(Desk& desk);
  void work(Desk& desk, bool calm);
  void put_back(Desk& desk);
  void work_on(Desk& desk, const queue::Delivery& delivery, bool calm);
  /// False: there was nothing.
  bool take(Desk& desk);
  void settle(Desk& desk, const queue::Delivery& delivery, queue::CompletionAction action, Duration delay = {});
  std::string standing();
  bool wrong() const { return !wrong_.empty() || !truth_.wrong().empty(); }

  SeededRandom random_;
  SeededRandom slow_;  ///< of producers
  const Mix mix_;
  OwnerWorld world_;
  OwnerTruth truth_;
  std::vector<std::unique_ptr<Desk>> desks_;
  std::map<std::string, Producer> producers_;  ///< by group
  std::vector<std::string> sent_;
  std::set<std::string> done_;
  std::string wrong_;
  bool patient_ = false;  ///< nothing is removed: a backlog is to stay
  bool inside_ = false;   ///< of a request of another host's
  int named_ = 0;
  int doubles_ = 0;
  std::map<std::string, std::uint64_t> happened_;
};

}  // namespace sluice::test
