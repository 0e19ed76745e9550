#include "host/work/drain.hpp"

#include "host/work/assessor.hpp"
#include "host/work/claimer.hpp"
#include "host/work/dispatcher.hpp"
#include "host/work/idempotency_gate.hpp"
#include "host/work/in_flight_table.hpp"
#include "host/work/lease_keeper.hpp"
#include "host/work/settler.hpp"

namespace sluice::work {
namespace {

// Before the deadline, what is left running is released, so that the release itself still fits.
constexpr Duration kMaxReserve = std::chrono::seconds(2);

}  // namespace

void Drain::begin(SteadyTime now, SteadyTime deadline, StepEffects& effects) {
  if (phase_ == Phase::over) {
    return;
  }
  deadline_ = std::min(deadline_, deadline);
  if (deadline_ != SteadyTime::max()) {
    const Duration left = std::max(Duration::zero(), Duration(deadline_ - now));
    soft_deadline_ = std::min(soft_deadline_, deadline_ - std::min(left / 5, kMaxReserve));
  }
  parts_.settler.hurry(now, deadline_);
  if (phase_ == Phase::running) {
    phase_ = Phase::draining;
    stop_what_runs(now, effects);
  }
  effects.poller = effects.keeper = effects.keys = effects.drained = true;
  parts_.settler.call(now, effects);
}

void Drain::hard_stop(SteadyTime now, StepEffects& effects) {
  if (phase_ == Phase::over || hard_) {
    return;
  }
  hard_ = true;
  begin(now, now + kHardStopTime, effects);
  soft_deadline_ = now;
  ask_to_finish();
  parts_.settler.try_once();
  parts_.settler.call(now, effects);
}

void Drain::give_up_what_runs(SteadyTime now, StepEffects& effects) {
  given_up_ = true;
  for (std::uint32_t seat = 0; seat < parts_.workforce.seats(); ++seat) {
    if (!parts_.workforce.is_busy(seat)) {
      continue;
    }
    WorkerBatch& batch = parts_.workforce.batch(seat);
    parts_.assessor.collect(batch, now, effects);
    Task* task = batch.view().running;
    if (task == nullptr || task->stage() != TaskStage::dealt) {
      continue;
    }
    batch.lose_lease(*task);
    effects.about(observe::LogLevel::warn, "the handler has not finished in time, its message is released",
                  task->message, "handler " + parts_.assessor.handler());
    parts_.settler.put_back(*task, now);
    ++abandoned_;
  }
  parts_.settler.call(now, effects);
}

std::optional<SteadyTime> Drain::step(SteadyTime now, StepEffects& effects) {
  if (phase_ == Phase::over) {
    return std::nullopt;
  }
  if (now >= soft_deadline_ && !given_up_) {
    give_up_what_runs(now, effects);
  }
  const bool tried_once = hard_ && given_up_ && !parts_.claimer.under_way() && !parts_.keeper.under_way() &&
                          parts_.settler.idle() && parts_.gate.idle();
  if (nothing_left() || tried_once || now >= deadline_) {
    phase_ = Phase::over;
    parts_.in_flight.close();
    parts_.settler.end();
    return std::nullopt;
  }
  return given_up_ ? deadline_ : std::min(soft_deadline_, deadline_);
}

void Drain::release_waiting(SteadyTime now) {
  parts_.dispatcher.close();
  for (Task* task : parts_.dispatcher.waiting()) {
    parts_.settler.put_back(*task, now);
  }
  parts_.dispatcher.drop_gone();
}

void Drain::stop_what_runs(SteadyTime now, StepEffects& effects) {
  release_waiting(now);
  for (std::uint32_t seat = 0; seat < parts_.workforce.seats(); ++seat) {
    if (parts_.workforce.is_busy(seat)) {
      parts_.assessor.collect(parts_.workforce.batch(seat), now, effects);
    }
  }
  ask_to_finish();
}

void Drain::ask_to_finish() {
  for (std::uint32_t seat = 0; seat < parts_.workforce.seats(); ++seat) {
    if (parts_.workforce.is_busy(seat)) {
      parts_.workforce.batch(seat).request_stop(soft_deadline_);
    }
  }
}

bool Drain::nothing_left() const {
  return parts_.in_flight.open() == 0 && !parts_.claimer.under_way() && parts_.gate.idle();
}

void Drain::look(StepEffects& effects) const {
  if (phase_ == Phase::draining && (hard_ || nothing_left())) {
    effects.drained = true;
  }
}

}  // namespace sluice::work
