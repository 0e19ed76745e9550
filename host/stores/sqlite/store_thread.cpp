#include "host/stores/sqlite/store_thread.hpp"

#include <utility>

#include "base/signal_block.hpp"

namespace sluice::queue::sqlite {
namespace {

template <typename Body>
std::jthread quiet_thread(Body body) {
  const SignalBlock quiet;
  return std::jthread(std::move(body));
}

}  // namespace

StoreThread::StoreThread(Loop loop)
    : thread_(quiet_thread([this, loop = std::move(loop)](const std::stop_token& stop) {
        loop(stop);
        const MutexLock lock(mutex_);
        ended_ = true;
        changed_.notify_all();
      })) {}

bool StoreThread::ended_by(SteadyTime limit) {
  const MutexLock lock(mutex_);
  return changed_.wait_until(mutex_, limit, [this]() SLUICE_REQUIRES(mutex_) { return ended_; });
}

SteadyTime machine_now() { return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now()); }

SteadyTime machine_after(Duration span) {
  const SteadyTime now = machine_now();
  return span > SteadyTime::max() - now ? SteadyTime::max() : now + span;
}

}  // namespace sluice::queue::sqlite
