#pragma once

#include <functional>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace sluice::runtime {

/// What the host's main thread waits for: signals, as the signal watcher brings them. Thread-safe.
class HostEvents {
 public:
  /// SIGTERM and SIGINT ask for a drain, a second of them for a hard stop; SIGHUP for a reload.
  void signal(int number);
  /// As a termination signal, but never a second one: false, and nothing happens, where there was one.
  bool ask_drain();
  /// What a termination signal does besides, told which it is, from 1; called on the thread that brings the signal,
  /// which it must not hold up. Once this has returned an action set before is not called any more.
  void on_termination(std::function<void(int nth)> action);

  /// Something else than a signal has happened that the main thread waits for.
  void wake();
  /// Waits until a signal, a `wake` or `time`.
  void wait_until(SteadyTime time);
  bool terminating() const;
  bool hard_stop_requested() const;
  /// True once for each SIGHUP, however many arrived in between.
  bool take_reload();

 private:
  enum class Repeat { yes, no };
  bool terminate(Repeat repeat);

  mutable Mutex mutex_;
  Condition changed_;
  int terminations_ SLUICE_GUARDED_BY(mutex_) = 0;
  bool reload_ SLUICE_GUARDED_BY(mutex_) = false;
  bool seen_ SLUICE_GUARDED_BY(mutex_) = true;  ///< whether a wait has returned for the latest signal or wake
  std::function<void(int)> action_ SLUICE_GUARDED_BY(mutex_);
  int acting_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< how many threads are in the action
};

}  // namespace sluice::runtime
