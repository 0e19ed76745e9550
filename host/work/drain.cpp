#include "host/work/drain.hpp"

#include <algorithm>

namespace sluice::work {
namespace {

// Before the deadline, what is left running is released, so that the release itself still fits.
constexpr Duration kMaxReserve = std::chrono::seconds(2);

}  // namespace

void Drain::begin(SteadyTime now, SteadyTime deadline, StepEffects& notes) {
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
    stop_what_runs(now, notes);
  }
  notes.poller = notes.keeper = notes.keys = notes.drained = true;
  parts_.settler.call(now, notes);
}

void Drain::stop_what_runs(SteadyTime now, StepEffects& notes) {
  parts_.dispatcher.close();
  for (Task* task : parts_.dispatcher.waiting()) {
    parts_.settler.add(*task, put_back(task->suspect), now);
  }
  parts_.dispatcher.drop_gone();
  for (std::uint32_t seat = 0; seat < parts_.workforce.seats(); ++seat) {
    if (parts_.workforce.is_busy(seat)) {
      parts_.assessor.collect(parts_.workforce.batch(seat), now, notes);
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

void Drain::hard_stop(SteadyTime now, StepEffects& notes) {
  if (phase_ == Phase::over || hard_) {
    return;
  }
  hard_ = true;
  begin(now, now + kHardStopTime, notes);
  soft_deadline_ = now;
  ask_to_finish();
  parts_.settler.try_once();
  parts_.settler.call(now, notes);
}

void Drain::give_up_what_runs(SteadyTime now, StepEffects& notes) {
  given_up_ = true;
  for (std::uint32_t seat = 0; seat < parts_.workforce.seats(); ++seat) {
    if (!parts_.workforce.is_busy(seat)) {
      continue;
    }
    WorkerBatch& batch = parts_.workforce.batch(seat);
    parts_.assessor.collect(batch, now, notes);
    Task* task = batch.view().running;
    if (task == nullptr || task->stage() != TaskStage::dealt) {
      continue;
    }
    batch.lose_lease(*task);
    notes.about(observe::LogLevel::warn, "the handler has not finished in time, its message is released", task->message,
                "handler " + parts_.assessor.handler());
    parts_.settler.add(*task, put_back(task->suspect), now);
    ++abandoned_;
  }
  parts_.settler.call(now, notes);
}

std::optional<SteadyTime> Drain::step(SteadyTime now, StepEffects& notes) {
  if (phase_ == Phase::over) {
    return std::nullopt;
  }
  if (now >= soft_deadline_ && !given_up_) {
    give_up_what_runs(now, notes);
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

void Drain::look(StepEffects& notes) const {
  if (phase_ == Phase::draining && (hard_ || nothing_left())) {
    notes.drained = true;
  }
}

}  // namespace sluice::work
