#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <functional>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"

namespace sluice::runtime {

/// How long a service waits for one call to the store.
inline constexpr Duration kCallTime = std::chrono::seconds(2);
/// So long a service may take at the end of the host for what it leaves in the store.
inline constexpr Duration kFarewellTime = std::chrono::milliseconds(300);

/// Anything with a thread. A resource: not copyable, not movable. `start()` is called at most once; it fails where
/// there is no thread to be had. `stop()` may be called from any thread, any number of times, also before `start()`,
/// which then does nothing; it returns when the thread has ended. Destruction stops.
class Service : boost::noncopyable {
 public:
  virtual ~Service() = default;

  virtual Result<void> start() = 0;
  virtual void stop() = 0;
};

/// One thread with the contract of a Service. A resource; its destructor stops.
class ServiceThread : boost::noncopyable {
 public:
  /// `name` shows in the system's tools, cut to 15 bytes, and in what is said where the thread cannot be made.
  explicit ServiceThread(std::string name) : name_(std::move(name)) {}
  ~ServiceThread() { stop(); }

  /// Runs `loop`, which returns soon after a stop request. Nothing after `stop`. `unavailable` when there is no thread.
  Result<void> start(std::function<void(std::stop_token)> loop);
  void request_stop();
  /// Requests the stop and returns when the thread has ended.
  void stop() { stop_until(SteadyTime::max()); }
  /// The same, but waits no longer than until `time` (of the machine's monotonic clock); false: it still runs.
  bool stop_until(SteadyTime time);
  /// It has been started and has not come to its end.
  bool running() const;
  /// It has been started, and has.
  bool ended() const;

 private:
  enum class State { idle, running, ended };

  const std::string name_;
  mutable Mutex mutex_;
  Condition ended_;
  State state_ SLUICE_GUARDED_BY(mutex_) = State::idle;
  bool stopped_ SLUICE_GUARDED_BY(mutex_) = false;
  std::jthread thread_ SLUICE_GUARDED_BY(mutex_);
};

/// The threads of a job: its workers and those for claiming, settling and extending leases.
std::size_t threads_of(std::uint32_t concurrency);

/// Whether the system gives this process so many more threads at this moment. ErrorCode::invalid, with the limits
/// that are set, when it does not. Makes them and lets them go, which takes about 10 microseconds each.
Result<void> room_for_threads(std::size_t count);

/// Whether this process may open so many more files now; ErrorCode::invalid, with the limit, when not.
Result<void> room_for_descriptors(std::size_t count);

/// The limits on threads that are set for this process, such as "address space 400 MiB (ulimit -v)".
std::string thread_limits();

}  // namespace sluice::runtime
