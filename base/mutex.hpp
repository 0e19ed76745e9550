#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>

#include "base/clock.hpp"

// Clang's thread-safety analysis; nothing elsewhere. The only file in which a raw std::mutex appears.
#if defined(__clang__)
#define SLUICE_TSA(x) __attribute__((x))
#else
#define SLUICE_TSA(x)
#endif
#define SLUICE_GUARDED_BY(m) SLUICE_TSA(guarded_by(m))
#define SLUICE_REQUIRES(...) SLUICE_TSA(requires_capability(__VA_ARGS__))
#define SLUICE_EXCLUDES(...) SLUICE_TSA(locks_excluded(__VA_ARGS__))
#define SLUICE_ACQUIRE(...) SLUICE_TSA(acquire_capability(__VA_ARGS__))
#define SLUICE_RELEASE(...) SLUICE_TSA(release_capability(__VA_ARGS__))
#define SLUICE_NO_TSA SLUICE_TSA(no_thread_safety_analysis)

namespace sluice {

/// A mutex that clang's analysis understands.
class SLUICE_TSA(capability("mutex")) Mutex {
 public:
  void lock() SLUICE_ACQUIRE() { mutex_.lock(); }
  void unlock() SLUICE_RELEASE() { mutex_.unlock(); }
  bool try_lock() SLUICE_TSA(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

/// Holds a Mutex for a scope. `unlock()` and `lock()` open a gap in it, for calls that must not run under the lock.
class SLUICE_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SLUICE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() SLUICE_RELEASE() {
    if (held_) {
      mutex_.unlock();
    }
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() SLUICE_ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }
  void unlock() SLUICE_RELEASE() {
    held_ = false;
    mutex_.unlock();
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

/// A condition to wait on. Every wait names a reason to give up: a stop token, a time, or both.
class Condition {
 public:
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

  /// Waits until `ready()`; false when `stop` was requested first.
  template <typename Ready>
  bool wait(Mutex& mutex, const std::stop_token& stop, Ready ready) SLUICE_REQUIRES(mutex) {
    return condition_.wait(mutex, stop, ready);
  }
  /// Waits until `ready()`, `time` or a stop request; returns `ready()`.
  template <typename Ready>
  bool wait_until(Mutex& mutex, const std::stop_token& stop, SteadyTime time, Ready ready) SLUICE_REQUIRES(mutex) {
    if (time == SteadyTime::max()) {
      return condition_.wait(mutex, stop, ready);
    }
    return condition_.wait_until(mutex, stop, time, ready);
  }
  /// Waits until `ready()` or `time`; returns `ready()`.
  template <typename Ready>
  bool wait_until(Mutex& mutex, SteadyTime time, Ready ready) SLUICE_REQUIRES(mutex) {
    if (time == SteadyTime::max()) {
      condition_.wait(mutex, ready);
      return true;
    }
    return condition_.wait_until(mutex, time, ready);
  }

 private:
  std::condition_variable_any condition_;
};

}  // namespace sluice
