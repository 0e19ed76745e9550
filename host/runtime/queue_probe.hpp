#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "host/observe/log.hpp"
#include "host/queue/store.hpp"

namespace sluice::runtime {

/// One look at each queue before anything runs: failures that waiting does not mend are better said at the start than
/// in a log that nobody reads. On a thread of its own, so that a store that does not answer holds up no signal.
/// The references outlive it. Destruction waits for the look under way.
class QueueProbe {
 public:
  /// For all queues together.
  static constexpr Duration kTimeout = std::chrono::seconds(15);

  QueueProbe(queue::Store& store, const Clock& clock, observe::Log& log) : store_(store), clock_(clock), log_(log) {}

  /// Called once. `ended` is called on the probe's thread when there is a result.
  void start(std::vector<std::string> queues, std::function<void()> ended);
  /// Nothing while it looks; then success, or the first failure that waiting does not mend.
  std::optional<Result<void>> result() const;

 private:
  Result<void> look(const std::vector<std::string>& queues, Deadline deadline);

  // Fixed after construction.
  queue::Store& store_;
  const Clock& clock_;
  observe::Log& log_;

  mutable Mutex mutex_;
  std::optional<Result<void>> result_ SLUICE_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace sluice::runtime
