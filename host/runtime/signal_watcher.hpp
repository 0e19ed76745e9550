#pragma once

#include <functional>
#include <thread>

#include "base/mutex.hpp"
#include "host/runtime/service.hpp"

namespace sluice::runtime {

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
  const int signals_;  ///< signalfd
  const int wake_;     ///< eventfd that ends the watch
  Mutex stopping_;     ///< held while joining, so that every stop() returns only once the thread has ended
  // Last, so that it ends before what it uses.
  std::jthread thread_;
};

}  // namespace sluice::runtime
