#include "host/work/shared_flow.hpp"

namespace sluice::work {

void SharedFlow::wait(Caller& caller, std::uint64_t& seen, const std::stop_token& stop, SteadyTime until) {
  const MutexLock lock(mutex_);
  caller.condition.wait_until(mutex_, stop, until, [&]() { return caller.calls != seen; });
  seen = caller.calls;
}

bool SharedFlow::wait_work(const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  return work_.wait(mutex_, stop, [this]() SLUICE_REQUIRES(mutex_) { return flow_.has_queued(); });
}

void SharedFlow::count_calls(const Notes& notes) {
  poller_.calls += notes.poller ? 1 : 0;
  settler_.calls += notes.settler ? 1 : 0;
  keeper_.calls += notes.keeper ? 1 : 0;
  drained_.calls += notes.drained ? 1 : 0;
}

void SharedFlow::tell(const Notes& notes) {
  for (std::size_t i = 0; i < notes.workers; ++i) {
    work_.notify_one();
  }
  if (notes.poller) {
    poller_.condition.notify_all();
  }
  if (notes.settler) {
    settler_.condition.notify_all();
  }
  if (notes.keeper) {
    keeper_.condition.notify_all();
  }
  if (notes.drained) {
    drained_.condition.notify_all();
  }
  publish(notes, job_, log_, metrics_);
}

}  // namespace sluice::work
