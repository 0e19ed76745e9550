#pragma once

#include <chrono>

#include "base/mutex.hpp"

namespace sluice::test {

/// What the resolver hangs over in a program that hanging_name.cpp is compiled into: who asks for a name below
/// "hangs.invalid" waits until it is let go, or 20 s. Thread-safe.
class HangingName {
 public:
  void wait() {
    const MutexLock lock(mutex_);
    ++asked_;
    changed_.notify_all();
    until([this]() SLUICE_REQUIRES(mutex_) { return gone_on_; });
  }
  bool wait_until_asked() {
    const MutexLock lock(mutex_);
    until([this]() SLUICE_REQUIRES(mutex_) { return asked_ > 0; });
    return asked_ > 0;
  }
  void let_go() {
    const MutexLock lock(mutex_);
    gone_on_ = true;
    changed_.notify_all();
  }
  void begin() {
    const MutexLock lock(mutex_);
    gone_on_ = false;
    asked_ = 0;
  }
  int asked() {
    const MutexLock lock(mutex_);
    return asked_;
  }

 private:
  template <typename Until>
  void until(Until come) SLUICE_REQUIRES(mutex_) {
    changed_.wait_until(mutex_, std::chrono::steady_clock::now() + std::chrono::seconds(20), come);
  }

  Mutex mutex_;
  Condition changed_;
  int asked_ SLUICE_GUARDED_BY(mutex_) = 0;
  bool gone_on_ SLUICE_GUARDED_BY(mutex_) = false;
};

/// The process's.
inline HangingName& hang() {
  static auto* const hang = new HangingName();  // who asks may outlive the test
  return *hang;
}

}  // namespace sluice::test
