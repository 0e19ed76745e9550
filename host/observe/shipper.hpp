#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "dynamo/transport/http_transport.hpp"
#include "host/observe/collector.hpp"
#include "host/observe/sender_metrics.hpp"
#include "host/observe/ship_queue.hpp"
#include "host/runtime/service.hpp"

namespace sluice::observe {

/// How a collector takes what it is sent. A value.
struct SenderStatus {
  std::string name;
  std::string trouble;  ///< why the last request failed; empty: all is well
  ShipQueue::Figures figures;
};

/// Brings items to their collectors: one thread for all of them, which waits for none of them. Thread-safe.
class Shipper final : public runtime::Service {
 public:
  class Destination;
  /// Is told, on the shipper's thread, what an operator should read.
  using Tell = std::function<void(const std::string& text)>;

  /// The clock and the random source outlive it.
  Shipper(const Clock& clock, Random& random, Tell tell);
  ~Shipper() override;

  /// Before the start. The transport answers nobody any more when the shipper is destroyed; the metrics outlive it.
  Destination& add(std::unique_ptr<Collector> collector, dynamo::HttpTransport& transport, SenderMetrics& metrics);
  /// Never blocks. An item for which there is no room is dropped and counted.
  void put(Destination& lane, std::string item);

  Result<void> start() override;
  /// What has not been sent is dropped.
  void stop() override;
  /// Has everything sent without delay, and waits for that; false: `until` came first.
  bool flush(SteadyTime until);

  std::vector<SenderStatus> statuses() const;

 private:
  struct Sending {
    Destination* lane = nullptr;
    SteadyTime deadline{};
  };

  void run(const std::stop_token& stop);
  /// What is to be sent now; otherwise until when nothing is.
  std::vector<Sending> step(SteadyTime now, SteadyTime& wake, std::vector<std::string>& notices)
      SLUICE_REQUIRES(mutex_);
  void send(const Sending& sending);
  void answered(Destination& lane, const dynamo::HttpResult& result);
  static void publish(Destination& lane);

  // Fixed after construction.
  const Clock& clock_;
  Random& random_;
  const Tell tell_;

  mutable Mutex mutex_;
  Condition changed_;
  std::list<Destination> lanes_ SLUICE_GUARDED_BY(mutex_);
  std::uint64_t changes_ SLUICE_GUARDED_BY(mutex_) = 0;
  bool ended_ SLUICE_GUARDED_BY(mutex_) = false;
  // Last, so that it ends before what it uses.
  Mutex thread_mutex_;
  std::jthread thread_ SLUICE_GUARDED_BY(thread_mutex_);
};

}  // namespace sluice::observe
