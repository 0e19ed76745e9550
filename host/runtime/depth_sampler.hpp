#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/observe/log.hpp"
#include "host/observe/metrics.hpp"
#include "host/queue/store.hpp"
#include "host/runtime/service.hpp"

namespace sluice::runtime {

/// Keeps the queue-depth gauges. Counting a queue costs reads on DynamoDB, so it happens only when somebody has asked
/// for the metrics, and no more than once in `interval`: a scrape shows the depth as the scrape before it caused it.
class DepthSampler final : public Service {
 public:
  using Addresses = std::function<std::vector<queue::QueueAddress>()>;

  /// The references outlive the sampler.
  DepthSampler(Addresses addresses, queue::Store& store, observe::Metrics& metrics, const Clock& clock,
               Duration interval);
  ~DepthSampler() override;

  void start() override;
  void stop() override;

  /// Somebody reads the gauges. Thread-safe, returns at once.
  void asked();

 private:
  void run(const std::stop_token& stop);
  void sample();

  // Fixed after construction.
  const Addresses addresses_;
  queue::Store& store_;
  observe::Metrics& metrics_;
  const Clock& clock_;
  const Duration interval_;

  Mutex mutex_;
  Condition changed_;
  bool asked_ SLUICE_GUARDED_BY(mutex_) = false;

  Mutex stopping_;
  // Last, so that it ends before what it uses.
  std::jthread thread_;
};

}  // namespace sluice::runtime
