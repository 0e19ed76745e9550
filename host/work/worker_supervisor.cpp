#include "host/work/worker_supervisor.hpp"

#include <algorithm>

#include "base/guard.hpp"

namespace sluice::work {

WorkerSupervisor::WorkerSupervisor(Workforce& workforce, Dispatcher& dispatcher, Assessor& assessor)
    : workforce_(workforce), dispatcher_(dispatcher), assessor_(assessor) {}

SteadyTime WorkerSupervisor::inspect(SteadyTime now, StepEffects& notes) {
  SteadyTime next = SteadyTime::max();
  for (std::uint32_t seat = 0; seat < workforce_.seats(); ++seat) {
    if (workforce_.is_busy(seat)) {
      look_at(seat, now, notes);
      // Whoever is about to come back is not waited for without a pause.
      next = std::min(next, std::max(next_look(seat), now + kLateHandful));
    }
  }
  return next;
}

void WorkerSupervisor::look_at(std::uint32_t seat, SteadyTime now, StepEffects& notes) {
  if (workforce_.dealt(seat) > 1 && now - workforce_.dealt_at(seat) >= kLateHandful) {
    dispatcher_.take_back(seat);
    assessor_.collect(workforce_.batch(seat), now, notes);
  }
  const WorkerBatch::View view = workforce_.batch(seat).view();
  const bool stuck = view.running != nullptr && now >= workforce_.stuck_at(seat, view);
  if (!stuck || !SLUICE_GUARD(stuck_slot)) {
    return;
  }
  dispatcher_.take_back(seat);
  workforce_.lose(seat);
  assessor_.give_up(*view.running, now - view.started_at, now, notes);
}

SteadyTime WorkerSupervisor::next_look(std::uint32_t seat) const {
  if (!workforce_.is_busy(seat)) {
    return SteadyTime::max();
  }
  const SteadyTime stuck_at = workforce_.stuck_at(seat, workforce_.batch(seat).view());
  return workforce_.dealt(seat) > 1 ? std::min(stuck_at, workforce_.dealt_at(seat) + kLateHandful) : stuck_at;
}

SteadyTime WorkerSupervisor::hire(SteadyTime now, StepEffects& notes) {
  const Workforce::Wanted wanted = workforce_.want(dispatcher_.waiting_suspects(), now);
  notes.hire_workers += wanted.workers;
  notes.hire_lanes += wanted.lanes;
  return wanted.look_again;
}

}  // namespace sluice::work
