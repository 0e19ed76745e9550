#pragma once

#include <cmath>
#include <iterator>
#include <span>

#include "host/queue/moment.hpp"
#include "host/work/in_flight_table.hpp"

namespace sluice::work {

/// The largest claim, and the most that wait in memory for a worker.
inline constexpr std::size_t kMaxClaim = 1000;
/// What is claimed should start within this time: a message that waits in memory is a lease burning.
inline constexpr Duration kStartHorizon = std::chrono::milliseconds(100);
/// Bodies and checkpoints that wait in memory for a worker, in bytes; free workers are served beyond it.
inline constexpr std::size_t kClaimBytes = 16U << 20U;
/// The most messages that a worker takes at a time, and how long they may take it.
inline constexpr std::size_t kMaxHandful = 64;
inline constexpr Duration kHandfulTime = std::chrono::milliseconds(1);

/// Learns the time of handlers and the size of messages, and says how much to claim and to deal. Not thread-safe.
class ClaimSizer {
 public:
  struct Pool {
    std::size_t free = 0;    ///< workers without work
    std::size_t active = 0;  ///< free ones and those that come back soon; not those deep in a long attempt
    std::size_t queued = 0;  ///< messages claimed but not handed to a worker
    std::size_t asking = 0;  ///< beside these, whose keys are being asked for: quick workers need others meanwhile
    bool whole = false;      ///< what is queued may wait for the rest of a batch
  };

  /// `count` handlers took `total` together.
  void handled(Duration total, std::size_t count);
  void received(std::size_t bytes, std::size_t count);

  /// How much to claim now; 0 while the queue in memory is more than half full, so that claims stay large.
  std::size_t room(const Pool& pool) const;
  /// How many messages to hand to one worker: one at a time when handlers are slow.
  std::size_t handful(std::size_t queued, std::size_t workers) const;
  /// Mean time of a handler; Duration::max() before the first.
  Duration handler_time() const {
    return seconds_ < 0 ? Duration::max()
                        : std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds_));
  }

 private:
  double seconds_ = -1;
  double bytes_ = 0;
};

/// A token bucket that gates claims, so that nothing is claimed only to wait for its turn. Holds a tenth of a second's
/// worth, at least one token. Not thread-safe: a step class that is given the time.
class RateLimiter {
 public:
  /// `rate` messages a second; 0 or less: no limit. `shared`: all hosts of the job share it, so that this one has
  /// nothing until it has a lease on a part.
  RateLimiter(double rate, bool shared, SteadyTime now);

  /// From now on by that lease alone.
  void share(const RateLease& lease, SteadyTime now);
  double rate() const { return rate_; }

  /// How many messages may be claimed now.
  std::size_t available(SteadyTime now);
  /// Takes tokens for a claim.
  void take(std::size_t count) { tokens_ -= limited_ ? static_cast<double>(count) : 0; }
  /// Gives back what a claim did not find.
  void refund(std::size_t count) {
    if (limited_) {
      tokens_ = std::min(capacity_, tokens_ + static_cast<double>(count));
    }
  }
  /// When to look again after `available` said 0: with half a bucket, so that high rates claim in batches.
  SteadyTime next(SteadyTime now) const;

 private:
  /// A host without a part has no token of it either, nor room for one that is given back.
  static double capacity_of(double rate);
  void refill(SteadyTime now) {
    if (now > filled_at_) {
      const double seconds = std::chrono::duration<double>(now - filled_at_).count();
      tokens_ = std::min(capacity_, tokens_ + seconds * rate_);
      filled_at_ = now;
    }
  }

  const bool limited_;
  double rate_;
  double capacity_;
  double tokens_;
  SteadyTime filled_at_;
  SteadyTime until_ = SteadyTime::max();  ///< nothing is available from then on
};

/// How long to wait before the next try: doubles from `first` to `last`, with up to a tenth added at random so that
/// hosts started together drift apart. Not thread-safe.
class PollBackoff {
 public:
  PollBackoff(Duration first, Duration last) : first_(first), last_(last), current_(first) {}

  Duration next(Random& random) {
    const Duration wait = current_;
    current_ = std::min(last_, current_ * 2);
    return wait + part_of(wait / 10, random);
  }
  /// There was work, or a reason to expect some.
  void reset() { current_ = first_; }

 private:
  Duration first_;
  Duration last_;
  Duration current_;
};

/// Decides when a job claims, and how much of what it has room for. Not thread-safe.
class Claimer {
 public:
  /// What the job could take now.
  struct Room {
    std::size_t messages = 0;
    bool suspects = true;
  };
  struct Order {
    std::size_t count = 0;  ///< 0: nothing to do before `wake`, or before the poller is called
    bool suspects = true;
    SteadyTime wake = SteadyTime::max();

    bool empty() const { return count == 0; }
  };

  Claimer(const config::JobConfig& job, Random& random, SteadyTime now);

  /// What to claim now. Each order of more than nothing is followed by `claimed` or `failed`.
  Order next(const Room& room, SteadyTime now);
  void claimed(std::size_t count, std::optional<Duration> next_due, SteadyTime now, StepEffects& effects);
  void failed(const Error& error, SteadyTime now, StepEffects& effects);

  /// There may be a message.
  void wake(StepEffects& effects) {
    woken_ = true;
    empty_backoff_.reset();
    effects.poller = effects.poller || !claiming_;
  }
  /// This is what the job may claim of a limit that its hosts share.
  void share_rate(const RateLease& lease, SteadyTime now, StepEffects& effects) {
    limiter_.share(lease, now);
    short_of_rate_ = false;
    effects.poller = effects.poller || !claiming_;
  }
  /// The limit has kept a claim back since it was shared last.
  bool short_of_rate() const { return short_of_rate_; }
  double rate() const { return limiter_.rate(); }
  /// There may be room again.
  void room_made(StepEffects& effects) {
    waits_for_room_ = false;
    effects.poller = true;
  }
  /// A suspect may be taken again.
  void quarantine_free(StepEffects& effects) {
    if (!order_.suspects) {
      // The last claim passed suspects over.
      order_.suspects = true;
      found_nothing_ = false;
      wake(effects);
    }
  }
  /// An attempt has ended; `gave_back`: with nothing but the wish to have the message later.
  // What is given back is ready at once. Claimed again at once, it would go round as fast as the store allows.
  void attempt_ended(bool gave_back, StepEffects& effects);

  /// Of claims.
  const FailureRun& failures() const { return failures_; }
  bool waits_for_room() const { return waits_for_room_; }
  bool under_way() const { return claiming_; }
  /// The last claim, begun after the last wake, found nothing due.
  bool found_nothing() const { return found_nothing_ && !claiming_ && !woken_; }

 private:
  Random& random_;

  RateLimiter limiter_;
  PollBackoff empty_backoff_;
  PollBackoff due_backoff_;  ///< what the source says is due, and is not there
  PollBackoff failure_backoff_;
  PollBackoff given_back_backoff_;
  std::uint64_t given_back_ = 0;  ///< in a row: a handler that cannot work now
  SteadyTime poll_at_;
  SteadyTime not_before_ = SteadyTime::min();  ///< however often it is woken
  Order order_;
  bool claiming_ = false;
  bool woken_ = false;
  bool waits_for_room_ = false;
  bool short_of_rate_ = false;
  bool found_nothing_ = false;
  FailureRun failures_;
};

/// Whether a handler that has come back with `outcome` leaves nothing to commit but the end of its message.
bool only_removal_is_left(const Task& task, const plugin::Outcome& outcome);

/// The messages that one worker has taken: those it will start, those that are at work, those it has finished. While it
/// is deep in a long attempt the flow takes back the first. One worker has one at work; in a batch several are begun
/// and end together; of an asynchronous handler each ends by itself, by whatever thread. Thread-safe; its lock is taken
/// last and held for moments.
class WorkerBatch : boost::noncopyable {
 public:
  /// A message whose handler is at work. Stays where it is until it has been finished.
  struct Running : boost::noncopyable {
    explicit Running(const Clock& clock) : attempt(clock) {}

    Task* task = nullptr;  ///< for the worker; null: nothing runs here
    plugin::Attempt attempt;
    SteadyTime started_at{};
    bool begun = false;                                      ///< the handler has returned from its `begin`
    bool given_up = false;                                   ///< it is not waited for any more
    std::unique_ptr<plugin::CheckpointStore> checkpoints{};  ///< the worker's, for whatever runs here
  };
  struct Finished {
    Task* task = nullptr;
    plugin::Outcome outcome{};
    Duration took{};
    bool expired = false;      ///< never started: its lease had run out before
    bool timed_out = false;    ///< it ended after its time-out, and was waited for
    std::uint32_t beside = 1;  ///< so many were in one call
  };
  struct View {
    Task* running = nullptr;
    SteadyTime started_at{};
    SteadyTime times_out_at{};  ///< SteadyTime::max(): never
    bool begun = false;
    bool given_up = false;
    bool stop_requested = false;
  };
  /// How many messages it has.
  struct Counts {
    std::size_t unstarted = 0;
    std::size_t at_work = 0;
    std::size_t given_up = 0;  ///< of those at work: nobody waits for them

    std::size_t busy() const { return unstarted + at_work - given_up; }  ///< that are waited for
  };
  /// Who finishes a message.
  enum class Finisher {
    worker,  ///< and collects before it does anything else
    other,   ///< whoever completed it
  };

  /// `timeout` of an attempt; zero: none.
  WorkerBatch(const Clock& clock, Duration timeout) : clock_(clock), timeout_(timeout) {}

  // The worker's side.

  /// Starts the next message and arms its attempt; null when there is none. What may no longer be started by its
  /// `start_before` is passed over and finishes as expired.
  Running* next(SteadyTime now);
  /// True: nobody has been called yet to collect it, and the caller is to see to that.
  bool finish(Running& run, plugin::Outcome outcome, SteadyTime now, std::size_t beside = 1,
              Finisher who = Finisher::worker);
  /// In place of `finish`: what `next` gave was not started, and finishes as expired.
  void pass_over(Running& run) {
    const MutexLock lock(mutex_);
    SLUICE_ASSERT(run.task != nullptr);
    finished_.push_back({.task = run.task, .expired = true});
    vacate(run);
  }
  /// The handler has returned and goes on with the message, unless that has ended already: `task`, which is `run`'s.
  void left(Running& run, const Task& task) {
    const MutexLock lock(mutex_);
    inside_since_ = SteadyTime::max();
    run.begun = run.begun || run.task == &task;
  }
  /// A thread that is no worker's comes and goes; `wait_until_alone` waits until everything has ended and nobody is
  /// there.
  void enter() {
    const MutexLock lock(mutex_);
    ++visitors_;
  }
  void leave() {
    const MutexLock lock(mutex_);
    --visitors_;
    alone_.notify_all();
  }
  void wait_until_alone() {
    const MutexLock lock(mutex_);
    alone_.wait_until(mutex_, SteadyTime::max(),
                      [this]() SLUICE_REQUIRES(mutex_) { return visitors_ == 0 && at_work() == 0; });
  }
  Duration timeout() const { return timeout_; }

  // The flow's side.

  /// Since when the worker is in the `begin` that `next` gave it; SteadyTime::max(): it has returned.
  SteadyTime inside_since() const {
    const MutexLock lock(mutex_);
    return inside_since_;
  }

  void deal(Task& task, SteadyTime start_before) {
    const MutexLock lock(mutex_);
    unstarted_.push_back({&task, start_before});
  }
  /// Moves what has finished to the end of `finished`.
  void collect(std::vector<Finished>& finished) {
    const MutexLock lock(mutex_);
    std::move(finished_.begin(), finished_.end(), std::back_inserter(finished));
    finished_.clear();
    called_ = false;
  }
  /// Takes back what has not started, in order.
  void recall(std::vector<Task*>& unstarted) {
    const MutexLock lock(mutex_);
    for (const Dealt& dealt : unstarted_) {
      unstarted.push_back(dealt.task);
    }
    unstarted_.clear();
  }
  /// Takes back one message; false when it has started.
  bool recall(const Task& task) {
    const MutexLock lock(mutex_);
    const auto found =
        std::find_if(unstarted_.begin(), unstarted_.end(), [&](const Dealt& dealt) { return dealt.task == &task; });
    if (found == unstarted_.end()) {
      return false;
    }
    unstarted_.erase(found);
    return true;
  }
  /// Sets the stop tokens of what is at work; it is waited for until `end`.
  void request_stop(SteadyTime end) {
    const MutexLock lock(mutex_);
    for (Running& run : runs_) {
      if (run.task != nullptr) {
        run.attempt.request_stop(end);
      }
    }
  }
  /// Sets that of the message with this id, of this part or with none of any, if it is at work here; false: it is not.
  bool request_stop_of(std::string_view message_id, std::optional<std::uint16_t> part) {
    const MutexLock lock(mutex_);
    const auto found = std::find_if(runs_.begin(), runs_.end(), [&](const Running& run) {
      return run.task != nullptr && run.task->message.id == message_id &&
             part.value_or(run.task->part) == run.task->part;
    });
    if (found == runs_.end()) {
      return false;
    }
    found->attempt.request_stop();
    return true;
  }
  /// Sets it, and fails its extensions, if that message is at work.
  void lose_lease(const Task& task) {
    const MutexLock lock(mutex_);
    if (Running* const run = find(task)) {
      run->attempt.lose_lease();
    }
  }
  /// It is not waited for any more; false: it has come back meanwhile.
  bool give_up(const Task& task) {
    const MutexLock lock(mutex_);
    Running* const run = find(task);
    if (run != nullptr && !run->given_up) {
      run->given_up = true;
      ++given_up_;
    }
    return run != nullptr;
  }
  /// Of everything that is at work, to the end of `views`.
  void look(std::vector<View>& views) const {
    const MutexLock lock(mutex_);
    for (const Running& run : runs_) {
      if (run.task != nullptr) {
        views.push_back(
            {run.task, run.started_at, run.attempt.deadline(), run.begun, run.given_up, run.attempt.stop_requested()});
      }
    }
  }
  Counts counts() const {
    const MutexLock lock(mutex_);
    return {unstarted_.size(), at_work(), given_up_};
  }

 private:
  struct Dealt {
    Task* task = nullptr;
    SteadyTime start_before{};
  };

  Running* find(const Task& task) SLUICE_REQUIRES(mutex_) {
    return task.run < runs_.size() && runs_[task.run].task == &task ? &runs_[task.run] : nullptr;
  }
  std::size_t at_work() const SLUICE_REQUIRES(mutex_) { return runs_.size() - free_.size(); }
  void vacate(Running& run) SLUICE_REQUIRES(mutex_) {
    free_.push_back(run.task->run);
    run.task = nullptr;
    given_up_ -= run.given_up ? 1 : 0;
    if (at_work() == 0) {
      alone_.notify_all();
    }
  }

  const Clock& clock_;
  const Duration timeout_;
  mutable Mutex mutex_;
  Condition alone_;
  std::deque<Dealt> unstarted_ SLUICE_GUARDED_BY(mutex_);
  std::deque<Running> runs_ SLUICE_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> free_ SLUICE_GUARDED_BY(mutex_);  ///< among the runs
  std::size_t given_up_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::size_t visitors_ SLUICE_GUARDED_BY(mutex_) = 0;
  SteadyTime inside_since_ SLUICE_GUARDED_BY(mutex_) = SteadyTime::max();
  bool called_ SLUICE_GUARDED_BY(mutex_) = false;  ///< somebody is about to collect
  std::vector<Finished> finished_ SLUICE_GUARDED_BY(mutex_);
};

enum class SeatKind {
  worker,
  quarantine,  ///< for suspects, beside the workers
};

/// How a job's workers take their messages. A value.
struct WorkStyle {
  plugin::HandlerKind kind = plugin::HandlerKind::plain;
  std::size_t max_batch = 1;  ///< messages in a call of a batch handler
  Duration max_wait{};        ///< for which a message may wait that its batch gets full

  bool batch() const { return kind == plugin::HandlerKind::batch; }
  /// One worker begins with all messages, as many as the job has workers otherwise.
  bool async() const { return kind == plugin::HandlerKind::async; }
  /// How one on such a seat takes them: a suspect runs alone, whatever its handler would take.
  plugin::HandlerKind taken_by(SeatKind seat) const {
    return seat == SeatKind::worker ? kind : plugin::HandlerKind::plain;
  }
  /// The most messages in one call.
  std::size_t in_a_call() const { return batch() ? max_batch : 1; }
  /// The threads of so many workers.
  std::uint32_t seats(std::uint32_t workers) const { return async() ? 1 : workers; }
};

/// So many workers, or as many as it has, a job may lose to handlers that do not return before it replaces no more.
inline constexpr std::uint32_t kMinLossLimit = 4;
/// A job runs as many suspects at a time as it has workers, within these bounds, in quarantine beside them: two at
/// least, so that one that hangs does not hold up the others, and at most as many processes as there is memory for.
inline constexpr std::size_t kFewestQuarantined = 2;
inline constexpr std::size_t kMostQuarantined = 16;
/// Whoever runs handlers in other processes kills what does not return; only then has its worker something to explain.
inline constexpr Duration kKillTime = std::chrono::seconds(5);

/// Who works for a job: each seat is a worker with its batch. Decides whose handler is stuck, and when a worker is to
/// be made for one that is lost. Not thread-safe.
class Workforce {
 public:
  struct Settings {
    std::uint32_t workers = 1;
    Duration stuck_grace = std::chrono::seconds(5);
    WorkStyle style{};

    /// How many messages could be at work at a time.
    std::size_t places() const { return workers * style.in_a_call(); }
  };
  enum class State { vacant, idle, busy, lost, leaving };
  struct Seat {
    WorkerBatch* batch = nullptr;  ///< null while it is vacant
    SeatKind kind = SeatKind::worker;
    bool isolated = false;                                   ///< its handlers run in a process of their own
    plugin::HandlerKind takes = plugin::HandlerKind::plain;  ///< as WorkStyle::taken_by
    State state = State::vacant;
    std::size_t dealt = 0;
    SteadyTime dealt_at{};

    bool async() const { return takes == plugin::HandlerKind::async; }
    /// Its handler may be at work on something that is waited for.
    bool works() const { return state == State::busy || (state == State::lost && batch->counts().busy() > 0); }
    /// When what was begun then times out at the earliest; SteadyTime::max(): never.
    SteadyTime times_out_at(SteadyTime begun) const {
      const Duration timeout = batch->timeout();
      return timeout <= Duration::zero() || begun == SteadyTime::max() ? SteadyTime::max() : begun + timeout;
    }
  };
  /// The first ones are made without being asked for.
  explicit Workforce(const Settings& settings) : settings_(settings) {
    crew(SeatKind::worker).in_making = seats_wanted();
  }

  /// A worker is ready. `isolated`: its handlers run in a process of their own.
  std::uint32_t enlist(WorkerBatch& batch, SeatKind kind, bool isolated);
  /// So many there shall be: missing ones are wanted, those that are too many leave when they come back.
  void set_workers(std::uint32_t workers) { settings_.workers = workers; }
  /// Workers that are too many.
  std::size_t surplus() const {
    const std::size_t workers = crew(SeatKind::worker).size();
    return workers - std::min<std::size_t>(workers, settings_.workers);
  }
  /// It could not be made.
  void not_made(SeatKind kind, SteadyTime now);
  /// It ends.
  void leave(std::uint32_t seat) {
    go(seats_[seat], State::vacant);
    seats_[seat].batch = nullptr;
  }

  void busy(std::uint32_t seat, std::size_t dealt, SteadyTime now) {
    Seat& one = seats_[seat];
    SLUICE_ASSERT(one.state == State::idle || (one.async() && one.state == State::busy));
    go(one, State::busy);
    // What is begun together is not handed on to others.
    one.dealt = one.takes == plugin::HandlerKind::plain ? dealt : 1;
    one.dealt_at = now;
  }
  /// It has come back for more; false: nobody waits for it any more, it shall leave.
  bool back(std::uint32_t seat);
  /// At most what is at work is left in its batch. One whose worker is in no `begin` is idle once nothing is.
  void swept(std::uint32_t seat) {
    Seat& one = seats_[seat];
    one.dealt = std::min<std::size_t>(one.dealt, 1);
    const bool inside = one.batch->inside_since() != SteadyTime::max();
    if (one.async() && one.state == State::busy && one.batch->counts().busy() == 0 && !inside) {
      go(one, State::idle);
    }
  }
  /// Its handler does not come back.
  void lose(std::uint32_t seat) {
    SLUICE_ASSERT(seats_[seat].state == State::busy);
    go(seats_[seat], State::lost);
  }
  /// Has the threads made that are missing, with so many suspects waiting; says when to ask again.
  SteadyTime hire(std::size_t waiting_suspects, SteadyTime now, StepEffects& effects);

  const std::vector<Seat>& seats() const { return seats_; }
  /// When a handler counts as stuck that times out at this time; SteadyTime::max(): never.
  SteadyTime stuck_at(const Seat& one, SteadyTime times_out_at) const {
    const Duration grace = settings_.stuck_grace + (one.isolated ? kKillTime : Duration::zero());
    return queue::until(times_out_at, grace);
  }

  const Settings& settings() const { return settings_; }
  /// The most suspects that run at a time.
  std::size_t most_quarantined() const {
    return std::clamp<std::size_t>(settings_.workers, kFewestQuarantined, kMostQuarantined);
  }
  std::size_t free_workers() const { return crew(SeatKind::worker).free; }
  /// How many messages could be begun with at once.
  std::size_t free_places() const;
  /// Free ones and those that were given work within `span`. An asynchronous handler counts as many.
  std::size_t active_workers(Duration span, SteadyTime now) const {
    if (settings_.style.async()) {
      return free_workers() + crew(SeatKind::worker).busy > 0 ? settings_.workers : 0;
    }
    std::size_t active = free_workers();
    for (const Seat& seat : seats_) {
      const bool recent = seat.state == State::busy && now - seat.dealt_at < span;
      active += recent && seat.kind == SeatKind::worker ? 1 : 0;
    }
    return active;
  }
  std::size_t busy_quarantine() const { return crew(SeatKind::quarantine).busy; }
  bool anybody_busy() const { return crew(SeatKind::worker).busy + busy_quarantine() > 0; }
  /// No more workers are made: too many handlers have not returned.
  bool loss_limit_reached() const { return lost_ + given_up() >= std::max(kMinLossLimit, settings_.workers); }

 private:
  /// How many there are of one kind; none of those that are lost or leave.
  struct Crew {
    std::size_t free = 0;
    std::size_t busy = 0;
    std::size_t in_making = 0;

    std::size_t size() const { return free + busy + in_making; }
  };

  /// So many workers there shall be.
  std::uint32_t seats_wanted() const { return settings_.style.seats(settings_.workers); }
  /// Messages of an asynchronous handler that nobody waits for, whose worker is not lost.
  std::size_t given_up() const {
    std::size_t count = 0;
    for (const Seat& seat : settings_.style.async() ? std::span(seats_) : std::span<const Seat>()) {
      count += seat.batch != nullptr && seat.state != State::lost ? seat.batch->counts().given_up : 0;
    }
    return count;
  }
  Crew& crew(SeatKind kind) { return crews_[static_cast<std::size_t>(kind)]; }
  const Crew& crew(SeatKind kind) const { return crews_[static_cast<std::size_t>(kind)]; }
  void go(Seat& seat, State to) {
    count(seat, static_cast<std::size_t>(-1));
    seat.state = to;
    count(seat, 1);
  }
  void count(const Seat& seat, std::size_t change);

  Settings settings_;
  std::vector<Seat> seats_;
  std::array<Crew, 2> crews_{};
  std::size_t lost_ = 0;
  SteadyTime make_after_ = SteadyTime::min();
};

/// The most messages that a job holds, in whatever stage, so that a source that stopped answering stops the claims too.
inline constexpr std::size_t kMaxHeld = 4 * kMaxClaim;

/// Decides who is handed what: messages wait here for a worker, suspects for a place in quarantine. Not thread-safe.
class Dispatcher {
 public:
  Dispatcher(InFlightTable& in_flight, Workforce& workforce, const ClaimSizer& sizer)
      : in_flight_(in_flight), workforce_(workforce), sizer_(sizer) {}

  /// What could be claimed now.
  Claimer::Room room(SteadyTime now) const;
  /// A message waits for its worker from now on.
  void add(Task& task) { (task.suspect ? suspects_ : queue_).push_back(&task); }
  /// It waits for its key before it may wait for a worker.
  void hold_back(Task& task) { held_back_.push_back(&task); }
  bool holds_back() const { return open_ && !held_back_.empty(); }
  /// Those whose keys are asked for now, the first `most` that are held back; until `asked`. None while it is closed.
  std::vector<Task*> ask(std::size_t most) {
    if (open_) {
      const auto end = held_back_.begin() + static_cast<std::ptrdiff_t>(std::min(most, held_back_.size()));
      asking_.assign(held_back_.begin(), end);
      held_back_.erase(held_back_.begin(), end);
    }
    return asking_;
  }
  /// They are answered, and each has been added, held back again or disposed of.
  void asked() { asking_.clear(); }
  /// Fills the batch of a worker that has none; false: nothing for it.
  bool deal(std::uint32_t seat, SteadyTime now);
  /// There is something for a worker of this kind, or will be before `until`.
  bool has_work(SeatKind kind, SteadyTime until) const {
    if (!open_ || (kind == SeatKind::quarantine ? suspects_ : queue_).empty()) {
      return false;
    }
    return kind == SeatKind::quarantine ||
           (workforce_.settings().style.async() ? workforce_.free_places() > 0 : full() || ripe_at() < until);
  }
  /// When what waits goes to a worker although its batch is not full; SteadyTime::max(): nothing waits for a batch.
  SteadyTime ripe_at() const {
    if (!open_ || queue_.empty() || !workforce_.settings().style.batch()) {
      return SteadyTime::max();
    }
    // After half its lease it would be put back.
    const Duration wait = std::min(workforce_.settings().style.max_wait, in_flight_.terms().visibility() / 4);
    return queue_.front()->claimed_at + wait;
  }
  /// Calls as many workers as there is work for.
  void call(StepEffects& effects) const {
    if (!open_) {
      return;
    }
    if (workforce_.settings().style.async()) {
      effects.workers = std::max<std::size_t>(effects.workers, !queue_.empty() && workforce_.free_places() > 0 ? 1 : 0);
    } else {
      const std::size_t handful = std::max<std::size_t>(1, this->handful());
      effects.workers =
          std::max(effects.workers, std::min(workforce_.free_workers(), (queue_.size() + handful - 1) / handful));
    }
    effects.quarantine = std::max(effects.quarantine, suspects_.size());
  }

  /// Takes back what a worker has not started; it is the next to be handed out.
  void take_back(std::uint32_t seat);
  /// From now on nobody is handed anything, and what was not started is taken back; until `open`.
  void close() {
    open_ = false;
    for (std::uint32_t seat = 0; seat < workforce_.seats().size(); ++seat) {
      if (workforce_.seats()[seat].state == Workforce::State::busy) {
        take_back(seat);
      }
    }
  }
  void open() { open_ = true; }
  bool is_open() const { return open_; }

  /// Forgets what waits no more: it was disposed of, or has ended.
  void drop_gone() {
    const auto gone = [](const Task* task) { return task->stage() != TaskStage::queued; };
    std::erase_if(queue_, gone);
    std::erase_if(suspects_, gone);
    std::erase_if(held_back_, gone);
    std::erase_if(asking_, gone);
  }
  std::size_t waiting_suspects() const { return suspects_.size(); }

 private:
  /// How many a worker gets.
  std::size_t handful() const;
  bool full() const { return queue_.size() >= workforce_.settings().style.in_a_call(); }
  std::size_t held_suspects() const {
    const auto suspect = [](const Task* task) { return task->suspect; };
    return static_cast<std::size_t>(std::count_if(held_back_.begin(), held_back_.end(), suspect) +
                                    std::count_if(asking_.begin(), asking_.end(), suspect));
  }

  InFlightTable& in_flight_;
  Workforce& workforce_;
  const ClaimSizer& sizer_;

  std::deque<Task*> queue_;
  std::deque<Task*> suspects_;
  std::deque<Task*> held_back_;
  std::vector<Task*> asking_;
  std::vector<Task*> recalled_;  ///< scratch
  bool open_ = true;
};

}  // namespace sluice::work
