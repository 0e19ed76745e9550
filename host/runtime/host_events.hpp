#pragma once

#include <functional>
#include <optional>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "host/runtime/service.hpp"

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

/// Takes SIGTERM, SIGINT and SIGHUP on a thread of its own, so that no signal handler is needed anywhere.
class SignalWatcher final : public Service {
 public:
  /// Called on the watcher's thread with the signal's number; must not block.
  using OnSignal = std::function<void(int signal)>;

  /// Blocks the watched signals in the calling thread and all it starts from now on, and ignores SIGPIPE and
  /// SIGXFSZ, which are errors of write(2) instead. Call it first thing, before any thread exists; what arrives from
  /// then on waits until a watcher starts.
  static void block_signals();

  explicit SignalWatcher(OnSignal on_signal);
  ~SignalWatcher() override;

  Result<void> start() override;
  void stop() override;

 private:
  void watch();

  // Fixed after construction.
  const OnSignal on_signal_;
  const Descriptor signals_;  ///< signalfd
  const Descriptor wake_;     ///< eventfd that ends the watch
  // Last, so that it ends before what it uses.
  ServiceThread thread_{"signals"};
};

/// One piece of work at a time for a thread of its own: all that runs code of plugins or waits for disks, so that the
/// main thread goes on taking signals meanwhile. Used by the main thread.
class Errand final : public Service {
 public:
  /// What is left to do on the main thread once the work is done.
  using Rest = std::function<void()>;
  using Work = std::function<Rest()>;

  /// `done` is called on the errand's thread when there is something to take.
  explicit Errand(std::function<void()> done) : done_(std::move(done)) {}
  ~Errand() override { stop(); }
  Result<void> start() override {
    return thread_.start([this](const std::stop_token& stop) { run(stop); });
  }
  /// Waits for the work under way.
  void stop() override { thread_.stop(); }

  /// Not while one is under way.
  void send(Work work);
  /// For the work: waits so long, or until a stop was asked for, which it tells by false.
  bool wait_for(Duration span);
  /// From `send` until its rest has been taken.
  bool under_way() const;
  /// The rest of the work that has ended, once; nothing otherwise.
  std::optional<Rest> take();

 private:
  void run(const std::stop_token& stop);

  // Fixed after construction.
  const std::function<void()> done_;

  mutable Mutex mutex_;
  Condition changed_;
  std::optional<Work> work_ SLUICE_GUARDED_BY(mutex_);
  std::optional<Rest> rest_ SLUICE_GUARDED_BY(mutex_);
  bool under_way_ SLUICE_GUARDED_BY(mutex_) = false;
  // Touched only by the thread.
  std::stop_token stop_;
  // Last, so that it ends before what it uses.
  ServiceThread thread_{"sluice-errand"};
};

}  // namespace sluice::runtime
