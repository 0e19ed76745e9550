#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "host/observe/log.hpp"
#include "host/queue/queues.hpp"

namespace sluice::runtime {

/// One look at each queue before anything runs: failures that waiting does not mend are better said at the start than
/// in a log that nobody reads. A store that cannot be opened for a reason that may pass is waited for, since without it
/// no job can be made; one that is open and does not answer is not. On a thread of its own, so that a store that does
/// not answer holds up no signal. The references outlive it. Destruction waits for the look under way.
class QueueProbe {
 public:
  /// For the looks at all queues together.
  static constexpr Duration kTimeout = std::chrono::seconds(15);

  /// Before a store that could not be opened is tried again.
  static constexpr Duration kOpenAgain = std::chrono::seconds(1);

  QueueProbe(queue::Queues& queues, const Clock& clock, observe::Log& log)
      : queues_(queues), clock_(clock), log_(log) {}

  /// Called once. `ended` is called on the probe's thread when there is a result.
  void start(std::vector<std::string> queues, std::function<void()> ended);
  /// A queue that forbids the start, and why.
  struct Refusal {
    std::string queue;
    Error error;
  };
  struct Verdict {
    std::optional<Refusal> refusal;  ///< the first one
  };
  /// Nothing while it looks.
  std::optional<Verdict> verdict() const;

 private:
  Verdict look(const std::vector<std::string>& queues, const std::stop_token& stop);
  Result<std::unique_ptr<queue::Operator>> open(const std::string& queue, const std::stop_token& stop);

  // Fixed after construction.
  queue::Queues& queues_;
  const Clock& clock_;
  observe::Log& log_;

  mutable Mutex mutex_;
  Condition changed_;
  std::optional<Verdict> verdict_ SLUICE_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace sluice::runtime
