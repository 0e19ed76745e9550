#pragma once

#include "host/work/account.hpp"

namespace sluice::work {

class Assessor;
class Claimer;
class Dispatcher;
class IdempotencyGate;
class InFlightTable;
class LeaseKeeper;
class Settler;
class Workforce;

/// What a hard stop may take to release what is held.
inline constexpr Duration kHardStopTime = std::chrono::seconds(2);

/// Decides how a job ends: what is released, when handlers that still run are given up, and when it is over. Not
/// thread-safe.
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
  std::uint32_t abandoned() const { return abandoned_; }
  /// When it is over at the latest.
  SteadyTime deadline() const { return deadline_; }

 private:
  enum class Phase { running, draining, over };

  void stop_what_runs(SteadyTime now, StepEffects& effects);
  void ask_to_finish();
  void give_up_what_runs(SteadyTime now, StepEffects& effects);
  bool nothing_left() const;

  const Parts parts_;
  Phase phase_ = Phase::running;
  bool hard_ = false;
  bool given_up_ = false;
  std::uint32_t abandoned_ = 0;
  SteadyTime soft_deadline_ = SteadyTime::max();
  SteadyTime deadline_ = SteadyTime::max();
};

}  // namespace sluice::work
