#pragma once

#include "host/work/idempotency_gate.hpp"

namespace sluice::work {

/// Decides what becomes of messages by the job's failure policy: of what handlers have made of them, of what a claim
/// brought that no handler shall see, and of handlers that do not return. Not thread-safe.
class Assessor {
 public:
  Assessor(const FailurePolicy& policy, InFlightTable& in_flight, Settler& settler, Claimer& claimer,
           const IdempotencyGate& gate, ClaimSizer& sizer, Random& random)
      : policy_(policy),
        in_flight_(in_flight),
        settler_(settler),
        claimer_(claimer),
        gate_(gate),
        sizer_(sizer),
        random_(random) {}

  /// Takes over what the worker has finished.
  void collect(WorkerBatch& batch, SteadyTime now, StepEffects& effects);
  /// True: this host knows what becomes of the message without its handler, and it is on its way to be written.
  bool settles_at_once(Task& task, SteadyTime now, StepEffects& effects);
  /// Its handler, `async` or `beside` others in one call, has not come to an end within `limit`.
  void give_up(Task& task, Duration limit, bool async, std::size_t beside, SteadyTime now, StepEffects& effects);
  const HandlerTimes& times() const { return times_; }
  /// The handler's name, for what is said of it.
  const std::string& handler() const { return policy_.handler; }

 private:
  void take_over(WorkerBatch::Finished& finished, SteadyTime now, StepEffects& effects);
  Disposition disposition_of(const Task& task, const WorkerBatch::Finished& finished);
  /// Of a handler that has ended its process, or never returns.
  Disposition blame(const Task& task, const std::string& why, std::size_t beside);
  void log_outcome(const Task& task, const WorkerBatch::Finished& finished, StepEffects& effects) const;

  const FailurePolicy& policy_;
  InFlightTable& in_flight_;
  Settler& settler_;
  Claimer& claimer_;
  const IdempotencyGate& gate_;
  ClaimSizer& sizer_;
  Random& random_;

  HandlerTimes times_;
  std::vector<WorkerBatch::Finished> finished_;  ///< scratch
};

/// A worker that has not come back with its handful by then is deep in a long attempt: the rest is taken from it.
inline constexpr Duration kLateHandful = std::chrono::milliseconds(20);

/// Watches the workers: takes late handfuls back, and gives up handlers that do not return. Not thread-safe.
class WorkerSupervisor {
 public:
  WorkerSupervisor(Workforce& workforce, Dispatcher& dispatcher, Assessor& assessor)
      : workforce_(workforce), dispatcher_(dispatcher), assessor_(assessor) {}

  /// Looks at everybody; says when to look again.
  SteadyTime inspect(SteadyTime now, StepEffects& effects);
  /// When to look at a worker that was given work just now.
  SteadyTime next_look(std::uint32_t number) const;

 private:
  /// Says when to look again.
  SteadyTime look_at(std::uint32_t number, SteadyTime now, StepEffects& effects);
  /// Gives up what is stuck there.
  SteadyTime look_at_running(std::uint32_t number, SteadyTime now, StepEffects& effects);

  Workforce& workforce_;
  Dispatcher& dispatcher_;
  Assessor& assessor_;
  std::vector<WorkerBatch::View> views_;  ///< scratch
};

/// What a hard stop may take to release what is held.
inline constexpr Duration kHardStopTime = std::chrono::seconds(2);

/// Decides how a job ends: what is released, when handlers are given up, when it is over. Not thread-safe.
class Drain {
 public:
  /// What there is to bring to its end.
  struct Parts {
    InFlightTable& in_flight;
    Dispatcher& dispatcher;
    Workforce& workforce;
    Assessor& assessor;
    Settler& settler;
    const LeaseKeeper& keeper;
    const Claimer& claimer;
    const IdempotencyGate& gate;
  };

  explicit Drain(const Parts& parts) : parts_(parts) {}

  /// Begins, or brings the end forward.
  void begin(SteadyTime now, SteadyTime deadline, StepEffects& effects);
  void hard_stop(SteadyTime now, StepEffects& effects);
  /// Nobody is handed anything any more, and what waits goes back: for a pause too.
  void release_waiting(SteadyTime now);
  /// Called when it says, and whenever `drained` is set; nothing: it is over.
  std::optional<SteadyTime> step(SteadyTime now, StepEffects& effects);
  /// Calls whoever waits for the end, if it may have come nearer.
  void look(StepEffects& effects) const;

  bool begun() const { return phase_ != Phase::running; }
  bool over() const { return phase_ == Phase::over; }
  /// Handlers whose messages were released while they ran, whatever has become of them since.
  const std::vector<RunningHandler>& abandoned() const { return abandoned_; }
  /// When it is over at the latest.
  SteadyTime deadline() const { return deadline_; }

 private:
  enum class Phase { running, draining, over };

  void give_up_what_runs(SteadyTime now, StepEffects& effects);
  bool nothing_left() const;

  const Parts parts_;
  Phase phase_ = Phase::running;
  bool hard_ = false;
  bool given_up_ = false;
  std::vector<RunningHandler> abandoned_;
  SteadyTime soft_deadline_ = SteadyTime::max();
  SteadyTime deadline_ = SteadyTime::max();
};

/// How one job's messages flow: Source.claim -> workers -> Outcome -> Source.settle, leases kept beside. It decides
/// nothing itself; it tells those who do what has happened, in the right order:
///
/// when and how much to claim: Claimer. Whose handler may begin: IdempotencyGate. Who is handed what: Dispatcher. What
/// an outcome comes to: Assessor. What is written when: Settler. Whose lease is extended: LeaseKeeper. Who is late,
/// stuck or to be replaced: WorkerSupervisor, over the Workforce. How it ends: Drain.
/// What is held, and how it ended: InFlightTable.
///
/// Not thread-safe: the job's lock guards it, the simulation runs it on one thread. Nothing in here calls a source, a
/// handler or a log, or waits. Each kind of call has one caller, who asks for an order (`next_...`), carries it out
/// without the lock, and reports what came of it. Each step leaves in its StepEffects what is to be done afterwards.
class JobFlow {
 public:
  struct Settings {
    std::string host{};  ///< this host's name, written into failures
    Duration stuck_grace = std::chrono::seconds(5);
    std::vector<QueueLease> leases{QueueLease{}};  ///< of each of its queues
    Settler::Budgets budgets{};
    WorkStyle style{};
  };
  using ClaimOrder = Claimer::Order;
  using SettleOrder = Settler::Order;
  using ExtendOrder = LeaseKeeper::Order;
  using KeyOrder = IdempotencyGate::Order;

  /// `random` and `crash_ledger` outlive the flow.
  JobFlow(const config::JobConfig& job, const Settings& settings, Random& random, isolation::JobLedger& crash_ledger,
          SteadyTime now);

  // The poller's.
  ClaimOrder next_claim(SteadyTime now) {
    if (drain_.begun() || paused_) {
      return {};
    }
    return claimer_.next(blocked(now) ? Claimer::Room{} : dispatcher_.room(now), now);
  }
  void claimed(Result<queue::Claimed> result, SteadyTime now, StepEffects& effects);
  /// There may be a message.
  void wake(StepEffects& effects) { claimer_.wake(effects); }
  /// The source has lost what it had handed out.
  void taken_back(std::span<const queue::Receipt> receipts, SteadyTime now, StepEffects& effects) {
    if (claimer_.under_way()) {
      gone_while_claiming_.insert(gone_while_claiming_.end(), receipts.begin(), receipts.end());
    }
    keeper_.taken_back(receipts, effects);
    after_step(now, effects);
  }

  // The workers'. A worker that is ready gets its seat; it outlives it. `collect` takes over what its batch has
  // finished; false: it shall leave, which its last `collect` says. `deal` fills it again; false: nothing to do.
  // What was completed while the worker is elsewhere, whoever has completed it collects.
  enum class Then { goes_on, leaves, is_elsewhere };
  std::uint32_t enlist(WorkerBatch& batch, SeatKind kind, bool isolated, SteadyTime now, StepEffects& effects) {
    const std::uint32_t seat = workforce_.enlist(batch, kind, isolated);
    after_step(now, effects);
    return seat;
  }
  bool collect(std::uint32_t seat, SteadyTime now, StepEffects& effects, Then then = Then::goes_on) {
    assessor_.collect(*workforce_.seats()[seat].batch, now, effects);
    if (then == Then::is_elsewhere) {
      workforce_.swept(seat);
      dispatcher_.call(effects);
      after_step(now, effects);
      return true;
    }
    const bool stays = workforce_.back(seat);
    if (workforce_.seats()[seat].kind == SeatKind::quarantine) {
      claimer_.quarantine_free(effects);
    }
    if (then == Then::leaves) {
      workforce_.leave(seat);
    }
    after_step(now, effects);
    return stays;
  }
  bool deal(std::uint32_t seat, SteadyTime now, StepEffects& effects) {
    const bool dealt = dispatcher_.deal(seat, now);
    effects.deal_again = dispatcher_.ripe_at();
    if (dealt) {
      call_keeper(supervisor_.next_look(seat), effects);
    }
    if (claimer_.waits_for_room() && dispatcher_.room(now).messages > 0) {
      claimer_.room_made(effects);
    }
    return dealt;
  }
  bool has_work(SeatKind kind, SteadyTime until = SteadyTime::max()) const {
    return dispatcher_.has_work(kind, until) || (kind == SeatKind::worker && workforce_.surplus() > 0);
  }
  /// A thread that was asked for could not be made.
  void not_made(SeatKind kind, SteadyTime now, StepEffects& effects) {
    workforce_.not_made(kind, now);
    after_step(now, effects);
  }

  // The settler's.
  SettleOrder next_settlement(SteadyTime now, WallTime wall, StepEffects& effects) {
    SettleOrder order = settler_.next(now, wall);
    drain_.look(effects);
    return order;
  }
  void settled(SettleOrder&& order, std::vector<queue::SettleResult>&& results, SteadyTime now, StepEffects& effects) {
    for (queue::Delivery& anew : settler_.settled(std::move(order), std::move(results), now, effects)) {
      if (!drain_.over()) {
        admit(std::move(anew), now, effects);
        dispatcher_.call(effects);
      }
    }
    after_step(now, effects);
  }

  // The lease keeper's, which looks after the workers too.
  ExtendOrder next_extension(SteadyTime now, StepEffects& effects);
  void extended(ExtendOrder order, std::vector<queue::ExtendResult> results, SteadyTime now, StepEffects& effects) {
    keeper_.extended(std::move(order), std::move(results), now, effects);
    after_step(now, effects);
  }

  /// A worker's whose handler stores progress: each loan that is ours is followed by `repaid`.
  struct Checkpoints {
    static LeaseKeeper::Loan lend(JobFlow& flow, Task& task, SteadyTime now) { return flow.keeper_.lend(task, now); }
    static void repaid(JobFlow& flow, Task& task, const queue::SettleResult& result, std::string_view bytes,
                       SteadyTime now, StepEffects& effects) {
      flow.keeper_.repaid(task, result, bytes, now, effects);
      flow.call_keeper(task.lease.extend_at, effects);
      flow.after_step(now, effects);
    }
  };

  /// Who leases the job's part of a limit that all its hosts share.
  struct Rates {
    static void share(JobFlow& flow, const RateLease& lease, SteadyTime now, StepEffects& effects) {
      flow.claimer_.share_rate(lease, now, effects);
      flow.after_step(now, effects);
    }
  };

  // Who asks for idempotency keys.
  KeyOrder next_keys(SteadyTime now) { return drain_.over() ? KeyOrder{} : gate_.next(now, drain_.deadline()); }
  void keys_answered(const KeyOrder& order, IdempotencyGate::Answers answers, SteadyTime now, StepEffects& effects) {
    gate_.answered(order, std::move(answers), now, effects);
    after_step(now, effects);
  }

  // The operators'.
  /// Runs it so from now on. While it is paused nothing is claimed and no handler starts; what was claimed and has not
  /// started goes back at once, without burning an attempt; what runs goes on to its end.
  void steer(const JobSteering& steering, SteadyTime now, StepEffects& effects);
  /// Sets the stop token of the handler that works on this message, of this part or with none of any; false: there is
  /// none.
  bool cancel(std::string_view message_id, std::optional<std::uint16_t> part) {
    bool found = false;
    for (const Workforce::Seat& seat : workforce_.seats()) {
      found = (seat.batch != nullptr && seat.batch->request_stop_of(message_id, part)) || found;
    }
    return found;
  }

  Drain& drain() { return drain_; }
  const Drain& drain() const { return drain_; }
  const InFlightTable& in_flight() const { return in_flight_; }
  /// What it is at, but for `held_by_budget`.
  JobActivity activity(SteadyTime now) const;

 private:
  void admit(queue::Delivery&& delivery, SteadyTime now, StepEffects& effects);
  /// The first answer of those who make calls that the job cannot do without.
  std::optional<Error> first(std::optional<Error> (FailureRun::*answer)() const) const;
  // A source that does not take what was finished gets no more to finish.
  bool blocked(SteadyTime now) const { return settler_.blocked(now) && SLUICE_GUARD(blocked_job_claims_nothing); }
  /// Has threads made that are missing; says when to ask again.
  SteadyTime hire(SteadyTime now, StepEffects& effects) {
    return drain_.begun() ? SteadyTime::max() : workforce_.hire(dispatcher_.waiting_suspects(), now, effects);
  }
  void call_keeper(SteadyTime at, StepEffects& effects) { effects.keeper = keeper_alarm_.set(at) || effects.keeper; }
  void after_step(SteadyTime now, StepEffects& effects);

  const FailurePolicy policy_;
  const std::uint32_t file_workers_;  ///< as the job file says
  ClaimSizer sizer_;
  InFlightTable in_flight_;
  Workforce workforce_;
  Claimer claimer_;
  Settler settler_;
  Dispatcher dispatcher_;
  IdempotencyGate gate_;
  Assessor assessor_;
  LeaseKeeper keeper_;
  WorkerSupervisor supervisor_;
  Drain drain_;
  Alarm keeper_alarm_;
  std::vector<queue::Receipt> gone_while_claiming_;  ///< taken back while a claim was under way, which may bring them
  bool paused_ = false;
};

/// A job's flow with its lock. Runs steps under it; wakes, counts, logs and has threads made after it.
class SharedFlow : boost::noncopyable {
 public:
  /// Who waits to be called, besides the workers.
  enum class Caller { poller, settler, keeper, drain, keys, checkpoints };

  /// `traced`: the job's messages are, and what is logged about one says where in its trace it belongs.
  SharedFlow(std::string job, JobFlow& flow, const Clock& clock, observe::Log& log, observe::JobMetrics& metrics,
             bool traced = false)
      : job_(std::move(job)), traced_(traced), clock_(clock), log_(log), metrics_(metrics), flow_(flow) {}

  /// Before any step; empty: nobody watches.
  void watch_with(AttemptWatch watch) { watch_ = std::move(watch); }
  /// Before any step; empty: the source does not want to know what was handled.
  void follow_with(std::function<void(std::span<const queue::Receipt>)> follow) { follow_ = std::move(follow); }
  /// Who makes the threads that the flow asks for; called without the lock, from any thread. Before any step.
  using Hire = std::function<void(SeatKind kind)>;
  void hire_with(Hire hire) { hire_ = std::move(hire); }

  /// Runs `step(flow, args..., now, effects)` under the lock and returns what it returns. A step may do without the
  /// time or the effects, and may ask for the time of the wall too, after the other one.
  template <typename Step, typename... Args>
  auto run(Step step, Args&&... args) SLUICE_EXCLUDES(mutex_) {
    Turn turn(*this);
    if constexpr (std::is_invocable_v<Step, JobFlow&, Args..., SteadyTime, WallTime, StepEffects&>) {
      return std::invoke(step, flow_, std::forward<Args>(args)..., clock_.steady_now(), clock_.wall_now(),
                         turn.effects);
    } else if constexpr (std::is_invocable_v<Step, JobFlow&, Args..., SteadyTime, StepEffects&>) {
      return std::invoke(step, flow_, std::forward<Args>(args)..., clock_.steady_now(), turn.effects);
    } else if constexpr (std::is_invocable_v<Step, JobFlow&, Args..., SteadyTime>) {
      return std::invoke(step, flow_, std::forward<Args>(args)..., clock_.steady_now());
    } else if constexpr (std::is_invocable_v<Step, JobFlow&, Args..., StepEffects&>) {
      return std::invoke(step, flow_, std::forward<Args>(args)..., turn.effects);
    } else {
      return std::invoke(step, flow_, std::forward<Args>(args)...);
    }
  }
  template <typename Question>
  auto look(Question question) const SLUICE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::invoke(question, std::as_const(flow_));
  }

  /// Waits until it is called (again, since `seen`), `until`, or a stop request.
  void wait(Caller caller, std::uint64_t& seen, const std::stop_token& stop, SteadyTime until) SLUICE_EXCLUDES(mutex_) {
    Waiting& mine = waiting(caller);
    const MutexLock lock(mutex_);
    mine.condition.wait_until(mutex_, stop, until, [&]() { return mine.calls != seen; });
    seen = mine.calls;
  }
  /// Waits until there is something for a worker of this kind; false: `until` has come, or the stop was requested.
  bool wait_work(SeatKind kind, const std::stop_token& stop, SteadyTime until) SLUICE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return work(kind).wait_until(mutex_, stop, until,
                                 [this, kind, until]() SLUICE_REQUIRES(mutex_) { return flow_.has_work(kind, until); });
  }

  const Clock& clock() const { return clock_; }
  /// For lines of no step.
  void log(observe::LogLevel level, std::string_view text, const std::string& reason) {
    log_.write(level, text, {{"job", job_}, {"reason", reason}});
  }

  observe::JobMetrics& metrics() const { return metrics_; }

 private:
  struct Waiting {
    Condition condition;
    std::uint64_t calls = 0;
  };

  /// Holds the lock for a step, and tells what came of it once that is free.
  struct SLUICE_TSA(scoped_lockable) Turn {
    explicit Turn(SharedFlow& of) SLUICE_ACQUIRE(of.mutex_) : shared(of) {
      effects.watched = static_cast<bool>(shared.watch_);
      effects.follows = static_cast<bool>(shared.follow_);
      shared.mutex_.lock();
    }
    ~Turn() SLUICE_RELEASE() {
      shared.end(effects);
      shared.mutex_.unlock();
      shared.tell(effects);
    }

    SharedFlow& shared;
    StepEffects effects;
  };

  Waiting& waiting(Caller caller) { return waiting_[static_cast<std::size_t>(caller)]; }
  Condition& work(SeatKind kind) { return kind == SeatKind::quarantine ? quarantine_work_ : work_; }
  void end(StepEffects& effects) SLUICE_REQUIRES(mutex_);
  void tell(const StepEffects& effects) SLUICE_EXCLUDES(mutex_);

  // Fixed after construction, `hire_`, `watch_` and `follow_` before the first step.
  const std::string job_;
  const bool traced_;
  const Clock& clock_;
  observe::Log& log_;
  observe::JobMetrics& metrics_;
  Hire hire_;
  AttemptWatch watch_;
  std::function<void(std::span<const queue::Receipt>)> follow_;

  mutable Mutex mutex_;
  JobFlow& flow_ SLUICE_GUARDED_BY(mutex_);
  // The conditions synchronise themselves, the counts are guarded by mutex_.
  std::array<Waiting, 6> waiting_;
  Condition work_;
  Condition quarantine_work_;
};

}  // namespace sluice::work
