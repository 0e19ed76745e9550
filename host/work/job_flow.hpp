#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "host/queue/source.hpp"
#include "host/work/claim_sizer.hpp"
#include "host/work/disposition.hpp"
#include "host/work/failure_run.hpp"
#include "host/work/hand.hpp"
#include "host/work/lease_book.hpp"
#include "host/work/ledger.hpp"
#include "host/work/notes.hpp"
#include "host/work/poll_backoff.hpp"
#include "host/work/rate_limiter.hpp"
#include "host/work/settle_queue.hpp"

namespace sluice::work {

/// The longest that a claim or a settle call may take.
inline constexpr Duration kStoreTimeout = std::chrono::seconds(10);
/// The most messages that a job holds, in whatever state, so that a store that stopped answering stops the claims too.
inline constexpr std::size_t kMaxHeld = 4 * kMaxClaim;
/// The most leases in one extend call.
inline constexpr std::size_t kMaxExtendBatch = 500;
/// A worker that has not come back with its handful by then is deep in a long attempt: the rest is taken from it.
inline constexpr Duration kLateHandful = std::chrono::milliseconds(20);
/// What a hard stop may take to release what is held.
inline constexpr Duration kHardStopTime = std::chrono::seconds(2);

/// How one job's messages flow: Store.claim -> workers -> Outcome -> Store.settle, leases kept beside. Everything that
/// is decided is decided here; it never calls a store, a handler or a log, and never waits.
///
/// Not thread-safe: the job's lock guards it, the simulation runs it on one thread. Each kind of store call has one
/// caller, who asks for an order (`next_...`), carries it out without the lock, and reports what came of it. Each step
/// leaves in its Notes what is to be done afterwards.
class JobFlow {
 public:
  struct Settings {
    Duration visibility = std::chrono::seconds(30);
    Duration timeout = std::chrono::seconds(60);  ///< of an attempt; zero: none
    Duration stuck_grace = std::chrono::seconds(5);
    double rate_limit = 0;
  };
  struct ClaimOrder {
    std::size_t count = 0;  ///< 0: nothing to do before `wake`, or before a note wakes the poller
    SteadyTime wake = SteadyTime::max();
  };
  struct SettleOrder {
    std::vector<Task*> tasks;  ///< empty: nothing to do before `wake`
    std::vector<queue::Completion> completions;
    SteadyTime deadline{};
    SteadyTime wake = SteadyTime::max();
  };
  struct ExtendOrder {
    std::vector<Task*> tasks;  ///< empty: nothing to do before `wake`
    std::vector<queue::Receipt> receipts;
    SteadyTime deadline{};
    SteadyTime wake = SteadyTime::max();
  };
  struct Stuck {
    std::string message_id;
    SteadyTime started_at{};
  };

  /// `hands`: one for each worker. They and `random` outlive the flow.
  JobFlow(const Settings& settings, FailurePolicy policy, std::vector<Hand*> hands, Random& random, SteadyTime now);

  // The poller's.
  ClaimOrder next_claim(SteadyTime now);
  void claimed(Result<queue::Claimed> result, SteadyTime now, Notes& notes);
  /// There may be a message.
  void wake(Notes& notes);
  /// The source has lost what it had handed out.
  void taken_back(std::span<const queue::Receipt> receipts, Notes& notes);

  // The workers'. `collect` takes over what the hand has finished, `deal` fills it again; false: nothing to do.
  void collect(std::uint32_t hand, SteadyTime now, Notes& notes);
  bool deal(std::uint32_t hand, SteadyTime now, Notes& notes);
  bool has_queued() const { return !queued_.empty(); }

  // The settler's.
  SettleOrder next_settlement(SteadyTime now, WallTime wall, Notes& notes);
  void settled(SettleOrder order, std::vector<queue::SettleResult> results, SteadyTime now, Notes& notes);

  // The lease keeper's: extends leases, gives up lost ones, takes work back from late hands, reports stuck handlers.
  ExtendOrder next_extension(SteadyTime now, Notes& notes);
  void extended(ExtendOrder order, std::vector<queue::ExtendResult> results, SteadyTime now, Notes& notes);

  // The end. `drain_step` is called when it says, and whenever a note says `drained`; nothing: the flow has ended.
  void begin_drain(SteadyTime now, SteadyTime deadline, Notes& notes);
  void hard_stop(SteadyTime now, Notes& notes);
  std::optional<SteadyTime> drain_step(SteadyTime now, Notes& notes);
  bool ended() const { return phase_ == Phase::ended; }
  bool claim_under_way() const { return claiming_; }

  bool quiescent() const;
  LedgerSnapshot ledger() const { return ledger_.snapshot(); }
  std::size_t held() const { return book_.size(); }
  std::vector<Stuck> stuck() const;
  std::uint32_t handlers_running() const;

 private:
  enum class Phase { running, draining, ended };
  struct HandState {
    bool busy = false;
    std::size_t dealt = 0;
    SteadyTime dealt_at{};
  };

  std::size_t room(SteadyTime now) const;
  void ask_for_claims(SteadyTime now, Notes& notes);
  void call_workers(Notes& notes) const;
  void call_keeper(SteadyTime at, Notes& notes);
  void call_settler(SteadyTime now, Notes& notes);
  bool more_is_coming() const;
  void admit(queue::Delivery delivery, SteadyTime now, Notes& notes);
  void wait_for_more(const queue::Claimed& claimed, SteadyTime now);
  void claim_failed(const Error& error, SteadyTime now, Notes& notes);

  void note_given_back(const plugin::Outcome& outcome, Notes& notes);
  void take_over(Hand::Finished& finished, SteadyTime now, Notes& notes);
  void collect_finished(std::uint32_t hand, SteadyTime now, Notes& notes);
  void log_outcome(const Task& task, const plugin::Outcome& outcome, Notes& notes) const;
  void settle(Task& task, Disposition disposition, SteadyTime now);
  void release_queued(SteadyTime now);
  void end(Task& task, Ending ending, Notes& notes);
  void lose(Task& task, Notes& notes);
  void drop_hold(Task& task);
  void settle_failed(Task& task, const Error& error, SteadyTime now, Notes& notes);
  bool may_settle(Task& task, SteadyTime now, Notes& notes);

  void sweep(std::uint32_t hand, SteadyTime now, Notes& notes);
  SteadyTime watch(std::uint32_t hand, SteadyTime now, Notes& notes);
  bool wants_extension(Task& task, SteadyTime now, Notes& notes);
  SteadyTime next_lease_time(const Task& task) const;
  void extend_ended(Task& task, queue::ExtendResult& result, Notes& notes);
  void note_held(Notes& notes) const;

  void abandon_running(SteadyTime now, Notes& notes);
  void check_drained(Notes& notes) const;

  // Fixed after construction.
  const Settings settings_;
  const FailurePolicy policy_;
  const LeaseTerms terms_;
  const std::vector<Hand*> hands_;
  Random& random_;

  // What is held, and where it is.
  LeaseBook book_;
  std::deque<Task*> queued_;
  std::vector<HandState> hand_states_;
  std::size_t free_hands_;
  SettleQueue settle_queue_;
  Ledger ledger_;
  ClaimSizer sizer_;
  std::vector<Hand::Finished> finished_scratch_;
  std::vector<Task*> recall_scratch_;

  // The poller's state.
  RateLimiter limiter_;
  PollBackoff empty_backoff_;
  PollBackoff due_backoff_;  ///< what the source says is due, and is not there
  PollBackoff failure_backoff_;
  PollBackoff given_back_backoff_;
  std::uint64_t given_back_ = 0;  ///< outcomes in a row that were `release`: a handler that cannot work now
  SteadyTime poll_at_;
  std::size_t asked_ = 0;
  bool claiming_ = false;
  bool woken_ = false;
  bool waits_for_room_ = false;
  bool found_nothing_ = false;
  FailureRun claim_failures_;

  // The settler's and the keeper's state.
  bool settling_ = false;
  bool extending_ = false;
  FailureRun settle_failures_;
  FailureRun extend_failures_;
  SteadyTime keeper_wake_ = SteadyTime::max();
  SteadyTime settler_wake_ = SteadyTime::min();

  // The end.
  Phase phase_ = Phase::running;
  bool hard_ = false;
  bool abandoned_ = false;
  SteadyTime soft_deadline_ = SteadyTime::max();
  SteadyTime deadline_ = SteadyTime::max();
};

}  // namespace sluice::work
