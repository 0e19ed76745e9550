#pragma once

#include <atomic>
#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
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

/// A service whose thread does what is due, again and again: when it is woken, and at the time that it asked for.
class RepeatingService : public Service {
 public:
  Result<void> start() override;
  void stop() override { leave(SteadyTime::max()); }
  /// What is under way is the last, and little time is left: until `limit`, and kFarewellTime at most. Returns at once.
  void begin_leave(SteadyTime limit);
  /// As stop, but waits no longer than until `limit`. False: a store is being asked, and the thread ends only when that
  /// has answered; who cannot wait so long leaves the process without destroying the service.
  bool leave(SteadyTime limit);

 protected:
  RepeatingService(std::string name, const Clock& clock) : clock_(clock), thread_(std::move(name)) {}

  // Of the thread. Whoever implements them stops the service in its own destructor.

  /// Does what is due. When to do it again, unless it is woken before.
  virtual SteadyTime step(const std::stop_token& stop) = 0;
  /// The last of all, to be done by `end_by()`.
  virtual void end() {}
  SteadyTime end_by() const { return end_by_; }

  /// There is something to do. Returns at once, from any thread.
  void wake();

  const Clock& clock_;

 private:
  void run(const std::stop_token& stop);

  std::atomic<SteadyTime> end_by_{SteadyTime::max()};
  Mutex mutex_;
  Condition changed_;
  bool woken_ SLUICE_GUARDED_BY(mutex_) = false;
  // Last, so that it ends before what it uses.
  ServiceThread thread_;
};

/// What of that name was opened before, or is opened now.
template <typename Side, typename Open>
Result<Side*> opened(std::map<std::string, std::unique_ptr<Side>>& sides, const std::string& name, Open open) {
  auto& side = sides[name];
  if (!side) {
    SLUICE_TRY(made, open());
    side = std::move(*made);
  }
  return side.get();
}

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
