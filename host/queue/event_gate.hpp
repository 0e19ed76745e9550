#pragma once

#include <span>
#include <utility>

#include "base/mutex.hpp"
#include "host/queue/source.hpp"

namespace sluice::queue {

/// Lets a source's events through until it is closed; closing waits for those that are being told. Thread-safe.
class EventGate {
 public:
  explicit EventGate(SourceEvents events) : events_(std::move(events)) {}

  void ready() {
    if (!enter()) {
      return;
    }
    if (events_.on_ready) {
      events_.on_ready();
    }
    leave();
  }
  void lost(std::span<const Receipt> receipts) {
    if (!enter()) {
      return;
    }
    if (events_.lost) {
      events_.lost(receipts);
    }
    leave();
  }
  void close() {
    const MutexLock lock(mutex_);
    closed_ = true;
    left_.wait_until(mutex_, SteadyTime::max(), [this]() SLUICE_REQUIRES(mutex_) { return inside_ == 0; });
  }

 private:
  bool enter() {
    const MutexLock lock(mutex_);
    inside_ += closed_ ? 0 : 1;
    return !closed_;
  }
  void leave() {
    const MutexLock lock(mutex_);
    --inside_;
    left_.notify_all();
  }

  const SourceEvents events_;
  Mutex mutex_;
  Condition left_;
  bool closed_ SLUICE_GUARDED_BY(mutex_) = false;
  int inside_ SLUICE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice::queue
