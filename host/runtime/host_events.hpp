#pragma once

#include <optional>

#include "base/assert.hpp"
#include "base/bell.hpp"
#include "base/descriptor.hpp"
#include "host/runtime/service.hpp"

namespace sluice::runtime {

/// What the host's main thread waits for: signals, as the signal watcher brings them. Thread-safe.
class HostEvents {
 public:
  /// SIGTERM and SIGINT ask for a drain, a second of them for a hard stop; SIGHUP for a reload.
  void signal(int number);
  /// As a termination signal, but never a second one: false, and nothing happens, where there was one.
  bool ask_drain() { return terminate(Repeat::no); }
  /// What a termination signal does besides, told which it is, from 1; called on the thread that brings the signal,
  /// which it must not hold up. Once this has returned an action set before is not called any more.
  void on_termination(std::function<void(int nth)> action) {
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, SteadyTime::max(), [this]() SLUICE_NO_TSA { return acting_ == 0; });
    action_ = std::move(action);
  }

  /// Something else than a signal has happened that the main thread waits for.
  void wake() {
    {
      const MutexLock lock(mutex_);
      seen_ = false;
    }
    changed_.notify_all();
  }
  /// Waits until a signal, a `wake` or `time`.
  void wait_until(SteadyTime time) {
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, time, [this]() SLUICE_NO_TSA { return !seen_; });
    seen_ = true;
  }
  bool terminating() const {
    const MutexLock lock(mutex_);
    return terminations_ > 0;
  }
  bool hard_stop_requested() const {
    const MutexLock lock(mutex_);
    return terminations_ > 1;
  }
  /// True once for each SIGHUP, however many arrived in between.
  bool take_reload() {
    const MutexLock lock(mutex_);
    return std::exchange(reload_, false);
  }

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
  /// Blocks the watched signals in this thread and all it starts: they wait for a watcher. Ignores SIGPIPE and
  /// SIGXFSZ, which are errors of write(2) instead. Call it before any thread exists.
  static void block_signals();

  /// The events are told of each signal, and outlive the watcher.
  explicit SignalWatcher(HostEvents& events);
  ~SignalWatcher() override { stop(); }

  Result<void> start() override;
  void stop() override;

 private:
  void watch();

  HostEvents& events_;
  const Descriptor signals_;  ///< signalfd
  const Bell wake_;           ///< ends the watch
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

  /// Wakes the events when there is something to finish. They outlive the errand.
  explicit Errand(HostEvents& events) : events_(events) {}
  ~Errand() override { stop(); }
  Result<void> start() override {
    return thread_.start([this](const std::stop_token& stop) { run(stop); });
  }
  /// Waits for the work under way.
  void stop() override { thread_.stop(); }

  /// Not while one is under way.
  void send(Work work) {
    {
      const MutexLock lock(mutex_);
      SLUICE_ASSERT(!under_way_);
      under_way_ = true;
      work_ = std::move(work);
    }
    changed_.notify_all();
  }
  /// For the work: waits so long, or until a stop was asked for, which it tells by false.
  bool wait_for(Duration span) {
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, stop_, std::chrono::steady_clock::now() + span, [] { return false; });
    return !stop_.stop_requested();
  }
  /// From `send` until its rest has been done.
  bool under_way() const {
    const MutexLock lock(mutex_);
    return under_way_;
  }
  /// Does the rest of the work that has ended, once; nothing otherwise.
  void finish();
  /// Sends the work and waits until its rest is done. False: a drain was asked for before.
  bool carry_out(Work work);

 private:
  void run(const std::stop_token& stop);

  HostEvents& events_;

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

/// Keeps the host's word on when it ends, whatever hangs. Belongs to whoever takes signals. Thread-safe. The end has
/// last words (the drain certificate), said once: by the host when it comes to it in time, else by a second thread of
/// the watchdog's, which may hang in them too. Then the process is left without a destructor.
class Watchdog final : public Service {
 public:
  /// How long its last words may take: the process has ended by the time given plus this.
  static constexpr Duration kLastWordsTime = std::chrono::milliseconds(350);
  /// When nobody could say how the run ended.
  static constexpr int kUnknownStatus = 75;

  /// The process's exit code, and what says so.
  struct Ending {
    int status = kUnknownStatus;
    std::function<void()> say;
  };
  using LastWords = std::function<Ending()>;
  /// Ends the process with an exit code.
  using Leave = std::function<void(int status)>;

  explicit Watchdog(Leave leave) : leave_(std::move(leave)) {}
  ~Watchdog() override { stop(); }

  Result<void> start() override {
    SLUICE_PASS_ON(speaker_.start([this](const std::stop_token& stop) { speak(stop); }));
    return watcher_.start([this](const std::stop_token& stop) { watch(stop); });
  }
  void stop() override {
    watcher_.stop();
    speaker_.stop();
  }

  /// What it says from now on when it has to.
  void set_last_words(LastWords words) {
    const MutexLock lock(mutex_);
    words_ = std::move(words);
  }
  /// The process is to have ended by then. A later time than one given before changes nothing.
  void end_by(SteadyTime time) {
    {
      const MutexLock lock(mutex_);
      end_ = std::min(end_, time);
    }
    watched_.notify_all();
  }

  /// Before the host says the last words. True once: `status` is the exit code from now on, even if the process must
  /// be left in the middle. False when the watchdog is at it; then everything must be left as it is.
  bool begin_last_words(int status);

 private:
  void watch(const std::stop_token& stop);
  void speak(const std::stop_token& stop);

  const Leave leave_;

  Mutex mutex_;
  // One for each thread: whoever hangs in a wait can hold up those who notify the same condition.
  Condition watched_;
  Condition spoken_to_;
  LastWords words_ SLUICE_GUARDED_BY(mutex_);
  SteadyTime end_ SLUICE_GUARDED_BY(mutex_) = SteadyTime::max();
  bool said_by_host_ SLUICE_GUARDED_BY(mutex_) = false;
  bool due_ SLUICE_GUARDED_BY(mutex_) = false;  ///< the watchdog says the last words
  bool said_ SLUICE_GUARDED_BY(mutex_) = false;
  std::optional<int> status_ SLUICE_GUARDED_BY(mutex_);
  // Last, so that they end before what they use.
  ServiceThread speaker_{"last-words"};
  ServiceThread watcher_{"watchdog"};
};

}  // namespace sluice::runtime
