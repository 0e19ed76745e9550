#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/work/claim_sizer.hpp"
#include "host/work/claimer.hpp"
#include "host/work/disposition.hpp"
#include "host/work/doorkeeper.hpp"
#include "host/work/hand.hpp"
#include "host/work/handler_times.hpp"
#include "host/work/holdings.hpp"
#include "host/work/notes.hpp"
#include "host/work/settler.hpp"

namespace sluice::work {

/// Decides what becomes of messages by the job's failure policy: of what handlers have made of them, of what a claim
/// brought that no handler shall see, and of handlers that do not return. Not thread-safe.
class Assessor {
 public:
  Assessor(FailurePolicy policy, Holdings& holdings, Settler& settler, Claimer& claimer, const Doorkeeper& doorkeeper,
           ClaimSizer& sizer, Random& random);

  /// Takes over what the worker has finished.
  void collect(Hand& hand, SteadyTime now, Notes& notes);
  /// True: this host knows what becomes of the message without its handler, and it is on its way to be written.
  bool settles_at_once(Task& task, SteadyTime now, Notes& notes);
  /// Its handler has not returned within `limit`.
  void give_up(Task& task, Duration limit, SteadyTime now, Notes& notes);
  const HandlerTimes& times() const { return times_; }
  /// The handler's name, for what is said of it.
  const std::string& handler() const { return policy_.handler; }

 private:
  void take_over(Hand::Finished& finished, SteadyTime now, Notes& notes);
  Disposition disposition_of(const Task& task, const Hand::Finished& finished);
  void log_outcome(const Task& task, const Hand::Finished& finished, Notes& notes) const;

  // Fixed after construction.
  const FailurePolicy policy_;
  Holdings& holdings_;
  Settler& settler_;
  Claimer& claimer_;
  const Doorkeeper& doorkeeper_;
  ClaimSizer& sizer_;
  Random& random_;

  HandlerTimes times_;
  std::vector<Hand::Finished> finished_;  ///< scratch
};

}  // namespace sluice::work
