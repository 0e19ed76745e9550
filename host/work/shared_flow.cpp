#include "host/work/shared_flow.hpp"

namespace sluice::work {

void SharedFlow::wait(Caller caller, std::uint64_t& seen, const std::stop_token& stop, SteadyTime until) {
  Waiting& mine = waiting(caller);
  const MutexLock lock(mutex_);
  mine.condition.wait_until(mutex_, stop, until, [&]() { return mine.calls != seen; });
  seen = mine.calls;
}

bool SharedFlow::wait_work(SeatKind kind, const std::stop_token& stop, SteadyTime until) {
  const MutexLock lock(mutex_);
  return work(kind).wait_until(mutex_, stop, until,
                               [this, kind]() SLUICE_REQUIRES(mutex_) { return flow_.has_work(kind); });
}

void SharedFlow::count_calls(const StepEffects& notes) {
  waiting(Caller::poller).calls += notes.poller ? 1 : 0;
  waiting(Caller::settler).calls += notes.settler ? 1 : 0;
  waiting(Caller::keeper).calls += notes.keeper ? 1 : 0;
  waiting(Caller::keys).calls += notes.keys ? 1 : 0;
  waiting(Caller::drain).calls += notes.drained ? 1 : 0;
}

void SharedFlow::tell(const StepEffects& notes) {
  for (std::size_t i = 0; i < notes.workers; ++i) {
    work_.notify_one();
  }
  for (std::size_t i = 0; i < notes.lanes; ++i) {
    lane_work_.notify_one();
  }
  if (notes.poller) {
    waiting(Caller::poller).condition.notify_all();
  }
  if (notes.settler) {
    waiting(Caller::settler).condition.notify_all();
  }
  if (notes.keeper) {
    waiting(Caller::keeper).condition.notify_all();
  }
  if (notes.keys) {
    waiting(Caller::keys).condition.notify_all();
  }
  if (notes.drained) {
    waiting(Caller::drain).condition.notify_all();
  }
  publish(notes, job_, traced_, log_, metrics_);
  for (std::size_t i = 0; i < notes.hire_workers && hire_; ++i) {
    hire_(SeatKind::worker);
  }
  for (std::size_t i = 0; i < notes.hire_lanes && hire_; ++i) {
    hire_(SeatKind::lane);
  }
}

}  // namespace sluice::work
