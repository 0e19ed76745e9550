#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/work/claim_sizer.hpp"
#include "host/work/claimer.hpp"
#include "host/work/disposition.hpp"
#include "host/work/handler_times.hpp"
#include "host/work/idempotency_gate.hpp"
#include "host/work/in_flight_table.hpp"
#include "host/work/settler.hpp"
#include "host/work/step_effects.hpp"
#include "host/work/worker_batch.hpp"

namespace sluice::work {

/// Decides what becomes of messages by the job's failure policy: of what handlers have made of them, of what a claim
/// brought that no handler shall see, and of handlers that do not return. Not thread-safe.
class Assessor {
 public:
  Assessor(FailurePolicy policy, InFlightTable& in_flight, Settler& settler, Claimer& claimer,
           const IdempotencyGate& gate, ClaimSizer& sizer, Random& random);

  /// Takes over what the worker has finished.
  void collect(WorkerBatch& batch, SteadyTime now, StepEffects& notes);
  /// True: this host knows what becomes of the message without its handler, and it is on its way to be written.
  bool settles_at_once(Task& task, SteadyTime now, StepEffects& notes);
  /// Its handler has not returned within `limit`.
  void give_up(Task& task, Duration limit, SteadyTime now, StepEffects& notes);
  const HandlerTimes& times() const { return times_; }
  /// The handler's name, for what is said of it.
  const std::string& handler() const { return policy_.handler; }

 private:
  void take_over(WorkerBatch::Finished& finished, SteadyTime now, StepEffects& notes);
  Disposition disposition_of(const Task& task, const WorkerBatch::Finished& finished);
  void log_outcome(const Task& task, const WorkerBatch::Finished& finished, StepEffects& notes) const;

  // Fixed after construction.
  const FailurePolicy policy_;
  InFlightTable& in_flight_;
  Settler& settler_;
  Claimer& claimer_;
  const IdempotencyGate& gate_;
  ClaimSizer& sizer_;
  Random& random_;

  HandlerTimes times_;
  std::vector<WorkerBatch::Finished> finished_;  ///< scratch
};

}  // namespace sluice::work
