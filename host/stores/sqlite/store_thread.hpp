#pragma once

#include <functional>
#include <stop_token>
#include <thread>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace sluice::queue::sqlite {

/// A thread that calls the system on behalf of others, and may hang there: so that its end can be waited for without
/// being hung with it. A resource.
class StoreThread {
 public:
  using Loop = std::function<void(const std::stop_token&)>;

  /// `loop` returns soon after a stop is requested, unless the system holds it. Throws std::system_error where no more
  /// threads can be made.
  explicit StoreThread(Loop loop);
  /// Waits for the loop, however long it takes.
  ~StoreThread() = default;
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;

  void request_stop() { thread_.request_stop(); }
  /// False: at `limit`, by the machine's clock, it still runs.
  bool ended_by(SteadyTime limit);

 private:
  Mutex mutex_;
  Condition changed_;
  bool ended_ SLUICE_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

/// The machine's monotonic clock, by which threads wait; a store's own clock is injected and may stand still.
SteadyTime machine_now();
/// That time plus `span`, or never.
SteadyTime machine_after(Duration span);

}  // namespace sluice::queue::sqlite
