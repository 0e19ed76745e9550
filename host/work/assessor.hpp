#pragma once

#include "host/work/dispatcher.hpp"

namespace sluice::work {

class ClaimSizer;
class Claimer;
class IdempotencyGate;
class InFlightTable;
class Settler;

/// Decides what becomes of messages by the job's failure policy: of what handlers have made of them, of what a claim
/// brought that no handler shall see, and of handlers that do not return. Not thread-safe.
class Assessor {
 public:
  Assessor(FailurePolicy policy, InFlightTable& in_flight, Settler& settler, Claimer& claimer,
           const IdempotencyGate& gate, ClaimSizer& sizer, Random& random)
      : policy_(std::move(policy)),
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
  /// Its handler has not returned within `limit`.
  void give_up(Task& task, Duration limit, SteadyTime now, StepEffects& effects);
  const HandlerTimes& times() const { return times_; }
  /// The handler's name, for what is said of it.
  const std::string& handler() const { return policy_.handler; }

 private:
  void take_over(WorkerBatch::Finished& finished, SteadyTime now, StepEffects& effects);
  Disposition disposition_of(const Task& task, const WorkerBatch::Finished& finished);
  void log_outcome(const Task& task, const WorkerBatch::Finished& finished, StepEffects& effects) const;

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
