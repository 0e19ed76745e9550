#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/queue/source.hpp"

namespace sluice::plugin {

/// What a handler made of a message; the names are the ABI's, but for the last: the process that ran the handler has
/// ended or had to be killed, and `reason` says how.
enum class OutcomeStatus { done, retry, snooze, reject, discard, release, fault, crashed };
inline constexpr std::size_t kOutcomes = 8;
/// The outcomes' names, in metrics and traces.
inline constexpr std::array<std::string_view, kOutcomes> kOutcomeNames{"done",    "retry",   "snooze", "reject",
                                                                       "discard", "release", "fault",  "crashed"};
constexpr std::string_view to_string(OutcomeStatus status) { return kOutcomeNames[static_cast<std::size_t>(status)]; }

/// A value.
struct Outcome {
  OutcomeStatus status = OutcomeStatus::fault;
  std::optional<Duration> delay;  ///< for snooze always, for retry when the handler named one; never negative
  std::string reason;             ///< at most 4,096 bytes of valid UTF-8
  std::shared_ptr<const queue::Effects> effects{};  ///< with `done`: what it staged; null: nothing
};

/// Is told what happens to an attempt, while whoever does it waits and the attempt is locked: to be quick, and to call
/// nothing of the attempt. Thread-safe.
class AttemptWatcher {
 public:
  AttemptWatcher() = default;
  AttemptWatcher(const AttemptWatcher&) = delete;
  AttemptWatcher& operator=(const AttemptWatcher&) = delete;
  virtual ~AttemptWatcher() = default;

  /// The handler has until `end`; said again when that comes earlier.
  virtual void stop_requested(SteadyTime end, bool lease_lost) noexcept = 0;
  /// The time-out is that far from now.
  virtual void extended(Duration duration) noexcept = 0;
};

/// One attempt at a message, as the host steers it while the handler runs: its time-out and its stop.
///
/// Thread-safe. A resource that its worker owns and re-arms for each message; cheap to arm (no allocation, no lock).
class Attempt {
 public:
  explicit Attempt(const Clock& clock) : clock_(clock) {}
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  /// Begins an attempt that times out at `deadline` (SteadyTime::max(): never). Only between attempts.
  void arm(SteadyTime deadline) {
    first_result_.reset();
    deadline_.store(deadline.time_since_epoch().count());
    end_.store(kNever.time_since_epoch().count());
    stop_.store(false);
    lost_.store(false);
  }
  /// The attempt's message is a duplicate of one that is done, whose handler gave this back. Between `arm` and the
  /// handler; null, and so from `arm` on: it is none.
  void set_first_result(std::shared_ptr<const std::string> result) { first_result_ = std::move(result); }
  /// For the thread that runs the handler.
  const std::shared_ptr<const std::string>& first_result() const { return first_result_; }

  /// Asks the handler to finish: the host drains, and waits for it until `end`. May be called again with an earlier
  /// one.
  void request_stop(SteadyTime end = SteadyTime::max());
  /// As request_stop with no time left, and `extend` fails from now on.
  void lose_lease() {
    lost_.store(true);
    request_stop(clock_.steady_now());
  }

  /// True once the stop was requested or the attempt has timed out.
  bool stop_requested() const { return stop_.load() || timed_out(); }
  bool timed_out() const {
    const SteadyTime at = deadline();
    return at != kNever && clock_.steady_now() >= at;
  }
  /// Waits for that, at most `timeout`.
  bool wait_for_stop(Duration timeout);
  /// Until the time-out or the end of the drain, whichever is earlier; zero once passed, Duration::max() without one.
  Duration time_left() const {
    const SteadyTime at = std::min(deadline(), drain_end());
    return at == kNever ? Duration::max() : std::max(Duration::zero(), Duration(at - clock_.steady_now()));
  }
  /// The time-out alone.
  SteadyTime deadline() const { return SteadyTime(Duration(deadline_.load())); }
  /// Moves the time-out to now + `duration`; false when the lease is lost.
  bool extend(Duration duration);

  /// Tells `watcher` from now on, at once when a stop is requested already; null: nobody. The one before is not called
  /// any more when it returns.
  void watch(AttemptWatcher* watcher) {
    const MutexLock lock(mutex_);
    watcher_ = watcher;
    if (watcher != nullptr && stop_.load()) {
      watcher->stop_requested(drain_end(), lost_.load());
    }
  }

 private:
  static constexpr SteadyTime kNever = SteadyTime::max();

  SteadyTime drain_end() const { return SteadyTime(Duration(end_.load())); }

  const Clock& clock_;
  // Touched by whoever arms the attempt, and then by its worker.
  std::shared_ptr<const std::string> first_result_;
  // Synchronise themselves.
  std::atomic<SteadyTime::rep> deadline_{SteadyTime::max().time_since_epoch().count()};
  std::atomic<SteadyTime::rep> end_{SteadyTime::max().time_since_epoch().count()};  // of the drain
  std::atomic<bool> stop_{false};
  std::atomic<bool> lost_{false};
  Mutex mutex_;
  Condition stopped_;
  // Guarded by mutex_.
  AttemptWatcher* watcher_ SLUICE_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace sluice::plugin
