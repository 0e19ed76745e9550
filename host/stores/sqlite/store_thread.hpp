#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/signal_block.hpp"
#include "host/queue/moment.hpp"

namespace sluice::queue::sqlite {

/// A thread that calls the system on behalf of others, and may hang there: so that its end can be waited for without
/// being hung with it. A resource.
class StoreThread {
 public:
  using Loop = std::function<void(const std::stop_token&)>;

  /// `loop` returns soon after a stop is requested, unless the system holds it. Throws std::system_error where no more
  /// threads can be made.
  explicit StoreThread(Loop loop)
      : thread_(quiet_thread([this, loop = std::move(loop)](const std::stop_token& stop) {
          loop(stop);
          const MutexLock lock(mutex_);
          ended_ = true;
          changed_.notify_all();
        })) {}
  /// Waits for the loop, however long it takes.
  ~StoreThread() = default;

  void request_stop() { thread_.request_stop(); }
  /// False: at `limit`, by the machine's clock, it still runs.
  bool ended_by(SteadyTime limit) {
    const MutexLock lock(mutex_);
    return changed_.wait_until(mutex_, limit, [this]() SLUICE_REQUIRES(mutex_) { return ended_; });
  }

 private:
  template <typename Body>
  static std::jthread quiet_thread(Body body) {
    const SignalBlock quiet;
    return std::jthread(std::move(body));
  }

  Mutex mutex_;
  Condition changed_;
  bool ended_ SLUICE_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

/// The machine's monotonic clock, by which threads wait; a store's own clock is injected and may stand still.
inline SteadyTime machine_now() { return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now()); }
/// That time plus `span`, or never.
inline SteadyTime machine_after(Duration span) { return queue::until(machine_now(), span); }

}  // namespace sluice::queue::sqlite
