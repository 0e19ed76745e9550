#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "host/work/account.hpp"
#include "host/work/dispatcher.hpp"
#include "host/work/job_flow.hpp"
#include "tests/simulation/sim_loop.hpp"
#include "tests/simulation/sim_port.hpp"
#include "tests/simulation/truth.hpp"

namespace sluice::simulation {

/// How the simulated handlers behave; changes while the run goes on.
struct HandlerMix {
  double slow = 0;       ///< takes up to `slow_time`, looks at its stop token now and then
  double stuck = 0;      ///< does not look at it
  double fails = 0;      ///< retry or fault
  double rejects = 0;    ///< reject or discard
  double postpones = 0;  ///< snooze or release
  Duration slow_time = std::chrono::seconds(20);
  Duration quick_time = std::chrono::milliseconds(3);  ///< at most, of all the others
};

/// One host with one job: the product's own flow and hands, its threads played by events on one loop.
class SimHost : public std::enable_shared_from_this<SimHost> {
 public:
  struct World {
    SimLoop& loop;
    Random& random;
    SimPort::World& port;
    Truth& truth;
    HandlerMix handlers;
    config::JobConfig job;
    Duration visibility{};
    Duration grace = std::chrono::seconds(1);
    work::WorkStyle style{};  ///< of the handlers that are no suspects'
    /// A handler is about to start.
    std::function<void(const SimHost& host, const queue::Message& message)> on_start;
    /// Its handler has come to an end, and may stage something. May be empty.
    std::function<void(const work::Task& task, plugin::Outcome& outcome)> on_end{};
    /// Messages whose handlers end their process.
    std::set<std::string> bombs;
    /// One of them has ended this host.
    std::function<void(SimHost& host, const std::string& bomb)> on_death;
  };

  SimHost(World& world, Truth::Host number);

  void start();
  /// The process dies: nothing of it happens any more; what it has sent may still arrive.
  void crash() { alive_ = false; }
  /// The process is stopped and continued later (SIGSTOP, SIGCONT): it does not notice.
  void freeze(Duration span) { frozen_until_ = std::max(frozen_until_, loop().now() + span); }
  bool frozen() const { return frozen_until_ > loop().now(); }
  void wake();
  /// Another process finds the ledger of this one, which has died, and settles what it held.
  void recover(bool blames_all);

  void drain(Duration within);
  void hard_stop();
  bool ended() const { return flow_.drain().over(); }
  bool alive() const { return alive_; }

  work::LedgerSnapshot ledger() const { return flow_.in_flight().account(); }
  std::size_t held() const { return flow_.in_flight().size(); }
  /// Works on this message and has not been told to stop.
  bool works_on(const std::string& id);
  Truth::Host number() const { return number_; }
  bool drained_in_time() const { return in_time_; }

 private:
  struct Worker {
    Worker(const Clock& clock, Duration timeout, work::SeatKind its_kind) : batch(clock, timeout), kind(its_kind) {}
    work::WorkerBatch batch;
    const work::SeatKind kind;
    std::uint32_t seat = 0;
    std::set<work::WorkerBatch::Running*> running;
    std::uint64_t timer = 0;
    bool busy = false;
    bool gone = false;
  };
  /// What is at work in one call, and ends together.
  using Call = std::vector<work::WorkerBatch::Running*>;

  SimLoop& loop() const { return world_.loop; }
  void when(SteadyTime time, std::function<void()> event);
  /// As `when`, but the latest time set for this timer counts alone; SteadyTime::max(): none.
  void set(std::uint64_t& timer, SteadyTime time, std::function<void()> event);
  void step(const std::function<void(SteadyTime, work::StepEffects&)>& body);
  /// A call of the store: it arrives after a while, its answer comes back after another.
  template <typename Answer>
  void call(std::function<Answer()> arrives, std::function<void(Answer)> answered);

  void poll();
  void settle();
  void keep();
  void ask();
  void hire(work::SeatKind kind);
  void call(work::SeatKind kind, std::size_t count);
  void deal(Worker& worker);
  bool one_by_one(const Worker& worker) const {
    return world_.style.taken_by(worker.kind) == plugin::HandlerKind::plain;
  }
  bool async(const Worker& worker) const { return world_.style.taken_by(worker.kind) == plugin::HandlerKind::async; }
  void leave(const Worker& worker, SteadyTime now, work::StepEffects& effects);
  void run_next(Worker& worker);
  /// Starts the next message; null: there is none, or its handler has ended the process.
  work::WorkerBatch::Running* start(Worker& worker);
  void run(Worker& worker, const Call& call);
  void explode(Worker& worker, const Call& call, const std::string& bomb);
  void look(Worker& worker, SteadyTime ends_at, const Call& call);
  void finish(Worker& worker, const Call& call, const std::optional<plugin::Outcome>& outcome = {});
  void finish(Worker& worker, work::WorkerBatch::Running& run, plugin::Outcome outcome, std::size_t beside);
  plugin::Outcome pick_outcome();
  void step_drain();

  World& world_;
  const Truth::Host number_;
  SimPort port_;
  work::JobFlow flow_;
  std::deque<Worker> workers_;

  bool alive_ = true;
  SteadyTime frozen_until_{};
  std::uint64_t poll_timer_ = 0;
  std::uint64_t settle_timer_ = 0;
  std::uint64_t keep_timer_ = 0;
  std::uint64_t ask_timer_ = 0;
  std::uint64_t drain_timer_ = 0;
  bool polling_ = false;
  bool settling_ = false;
  bool keeping_ = false;
  bool asking_ = false;
  std::optional<SteadyTime> drain_by_;
  bool in_time_ = true;
};

}  // namespace sluice::simulation
