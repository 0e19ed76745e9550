#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "host/isolation/crash_ledger.hpp"
#include "host/queue/source.hpp"
#include "host/work/activity.hpp"
#include "host/work/alarm.hpp"
#include "host/work/assessor.hpp"
#include "host/work/claim_sizer.hpp"
#include "host/work/claimer.hpp"
#include "host/work/dispatcher.hpp"
#include "host/work/drain.hpp"
#include "host/work/idempotency_gate.hpp"
#include "host/work/in_flight_table.hpp"
#include "host/work/lease_keeper.hpp"
#include "host/work/pause.hpp"
#include "host/work/settler.hpp"
#include "host/work/step_effects.hpp"
#include "host/work/worker_supervisor.hpp"
#include "host/work/workforce.hpp"

namespace sluice::work {

/// How one job's messages flow: Source.claim -> workers -> Outcome -> Source.settle, leases kept beside. It decides
/// nothing itself; it tells those who do what has happened, in the right order:
///
/// when and how much to claim: Claimer. Whose handler may begin: IdempotencyGate. Who is handed what: Dispatcher. What
/// an outcome comes to: Assessor. What is written when: Settler. Whose lease is extended: LeaseKeeper. Who is late,
/// stuck or to be replaced: WorkerSupervisor, over the Workforce. Whether anything begins: Pause. How it ends: Drain.
/// What is held, and how it ended: InFlightTable.
///
/// Not thread-safe: the job's lock guards it, the simulation runs it on one thread. Nothing in here calls a source, a
/// handler or a log, or waits. Each kind of call has one caller, who asks for an order (`next_...`), carries it out
/// without the lock, and reports what came of it. Each step leaves in its StepEffects what is to be done afterwards.
class JobFlow {
 public:
  struct Settings {
    std::uint32_t workers = 1;
    Duration visibility = std::chrono::seconds(30);
    Duration stuck_grace = std::chrono::seconds(5);
    Duration max_lease = std::chrono::hours(12);
    std::vector<QueueLease> leases{};  ///< of each of several queues; empty: the two above
    Claimer::Settings claiming;
    std::optional<config::IdempotencyConfig> keys{};
    std::string job{};
    Settler::Budgets budgets{};
  };
  using ClaimOrder = Claimer::Order;
  using SettleOrder = Settler::Order;
  using ExtendOrder = LeaseKeeper::Order;
  using KeyOrder = IdempotencyGate::Order;

  /// `random` and `crash_ledger`, which may be null, outlive the flow.
  JobFlow(const Settings& settings, FailurePolicy policy, Random& random, isolation::JobLedger* crash_ledger,
          SteadyTime now);

  // The poller's.
  ClaimOrder next_claim(SteadyTime now);
  void claimed(Result<queue::Claimed> result, SteadyTime now, StepEffects& notes);
  /// There may be a message.
  void wake(StepEffects& notes) { claimer_.wake(notes); }
  /// The source has lost what it had handed out.
  void taken_back(std::span<const queue::Receipt> receipts, SteadyTime now, StepEffects& notes);

  // The workers'. A worker that is ready gets its seat; it outlives it. `collect` takes over what its hand has
  // finished; false: it shall leave. `deal` fills the hand again; false: nothing to do.
  std::uint32_t enlist(WorkerBatch& batch, SeatKind kind, bool isolated, SteadyTime now, StepEffects& notes);
  void leave(std::uint32_t seat, SteadyTime now, StepEffects& notes);
  bool collect(std::uint32_t seat, SteadyTime now, StepEffects& notes);
  bool deal(std::uint32_t seat, SteadyTime now, StepEffects& notes);
  bool has_work(SeatKind kind) const {
    return dispatcher_.has_work(kind) || (kind == SeatKind::worker && workforce_.surplus() > 0);
  }
  /// A thread that was asked for could not be made.
  void not_made(SeatKind kind, SteadyTime now, StepEffects& notes);

  // The settler's.
  SettleOrder next_settlement(SteadyTime now, WallTime wall, StepEffects& notes);
  void settled(SettleOrder&& order, std::vector<queue::SettleResult>&& results, SteadyTime now, StepEffects& notes);

  // The lease keeper's, which looks after the workers too.
  ExtendOrder next_extension(SteadyTime now, StepEffects& notes);
  void extended(ExtendOrder order, std::vector<queue::ExtendResult> results, SteadyTime now, StepEffects& notes);

  // Who asks for idempotency keys.
  KeyOrder next_keys(SteadyTime now);
  void keys_answered(const KeyOrder& order, IdempotencyGate::Answers answers, SteadyTime now, StepEffects& notes);

  // The operators'.
  void pause(bool paused, SteadyTime now, StepEffects& notes);
  bool paused() const { return pause_.on(); }
  /// From now on so many workers.
  void scale(std::uint32_t workers, SteadyTime now, StepEffects& notes);
  /// Sets the stop token of the handler that works on this message; false: there is none.
  bool cancel(std::string_view message_id);
  std::vector<RunningHandler> running() const;
  const HandlerTimes& handler_times() const { return assessor_.times(); }

  Drain& drain() { return drain_; }
  const Drain& drain() const { return drain_; }
  const InFlightTable& in_flight() const { return in_flight_; }
  const Workforce& workforce() const { return workforce_; }
  /// A call of the source has not been answered.
  bool claim_under_way() const { return claimer_.under_way(); }
  /// Why the job cannot do its work, where the store refuses the role.
  std::optional<Error> denial() const;
  /// Why claims or settlements fail just now.
  /// The store has answered no claim, or no settlement, with success for long.
  bool cut_off(SteadyTime now) const { return (!paused() && claimer_.cut_off(now)) || settler_.cut_off(now); }
  std::optional<Error> trouble() const { return claimer_.trouble() ? claimer_.trouble() : settler_.trouble(); }
  /// Nothing is held, and the last claim, begun after the last wake, found nothing due.
  bool quiescent() const;

 private:
  void admit(queue::Delivery&& delivery, SteadyTime now, StepEffects& notes);
  bool blocked(SteadyTime now) const;
  void call_keeper(SteadyTime at, StepEffects& notes);
  void after_step(SteadyTime now, StepEffects& notes);
  void note_held(StepEffects& notes) const;

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
  Pause pause_;
  Alarm keeper_alarm_;
  std::vector<queue::Receipt> gone_while_claiming_;  ///< taken back while a claim was under way, which may bring them
  bool shut_ = false;                                ///< nothing is dealt
};

}  // namespace sluice::work
