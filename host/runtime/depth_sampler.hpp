#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/observe/log.hpp"
#include "host/observe/metrics.hpp"
#include "host/queue/queues.hpp"
#include "host/runtime/service.hpp"

namespace sluice::runtime {

/// How much lies in a queue, as it was counted last. A value.
struct QueueDepth {
  queue::QueueStats standard;
  queue::QueueStats dlq;
  Duration oldest{};  ///< how long the oldest ready message had waited; zero without one
  SteadyTime at{};    ///< when it was asked for

  /// What workers are needed for: due, or being worked on.
  std::uint64_t backlog() const { return standard.ready + standard.in_flight; }
  std::uint64_t dead_letters() const { return dlq.total(); }
  Duration age(SteadyTime now) const { return now - at + standard.age.value_or(Duration::zero()); }
};

/// Keeps the depths of queues, and their gauges. Counting a queue costs reads on DynamoDB, so it happens only when
/// somebody has asked for them, and no more than once in `interval`: a scrape shows the depth as the scrape before it
/// caused it. A queue with a limit to its lag is counted all the time.
class DepthSampler final : public Service {
 public:
  using Addresses = std::function<std::vector<queue::QueueAddress>()>;
  using Limits = std::map<std::string, Duration>;  ///< by queue

  /// For how long the oldest message of a queue has waited. A value.
  struct Lag {
    Duration age{};
    Duration limit{};  ///< zero: there is none
    bool beyond() const { return limit > Duration::zero() && age > limit; }
  };

  /// The references outlive the sampler.
  DepthSampler(Addresses addresses, queue::Queues& queues, observe::Metrics& metrics, const Clock& clock,
               Duration interval, Limits limits = {});
  ~DepthSampler() override;

  Result<void> start() override;
  void stop() override;
  /// Ends it without waiting for a store. False: a store is being asked, and its thread ends only when that has
  /// answered; who cannot wait so long leaves the process without destroying the sampler.
  bool leave();

  /// Somebody reads the gauges. Thread-safe, returns at once.
  void asked();
  /// As it was counted last; nothing before the first time.
  std::optional<QueueDepth> depth(const std::string& queue) const;
  std::map<std::string, QueueDepth> depths() const;
  Duration interval() const { return interval_; }
  /// Of the queues that were counted, as they were then. Thread-safe, returns at once.
  std::map<std::string, Lag> lags() const;

 private:
  void run(const std::stop_token& stop);
  /// False when it is told to end instead.
  bool begin_sample(const std::stop_token& stop);
  void sample(const std::stop_token& stop, bool all);
  void sample(const std::string& queue);

  // Fixed after construction.
  const Addresses addresses_;
  queue::Queues& queues_;
  observe::Metrics& metrics_;
  const Clock& clock_;
  const Duration interval_;
  const Limits limits_;

  mutable Mutex mutex_;
  Condition changed_;
  std::map<std::string, QueueDepth> depths_ SLUICE_GUARDED_BY(mutex_);
  bool asked_ SLUICE_GUARDED_BY(mutex_) = false;
  bool sampling_ SLUICE_GUARDED_BY(mutex_) = false;
  bool leaving_ SLUICE_GUARDED_BY(mutex_) = false;  ///< no sample begins any more

  // Touched only by the thread.
  std::map<std::string, std::unique_ptr<queue::Operator>> operators_;

  Mutex stopping_;
  // Last, so that it ends before what it uses.
  std::jthread thread_;
};

}  // namespace sluice::runtime
