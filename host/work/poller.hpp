#pragma once

#include "host/queue/source.hpp"
#include "host/runtime/service.hpp"
#include "host/work/service_thread.hpp"
#include "host/work/shared_flow.hpp"

namespace sluice::work {

/// The thread that claims for one job: when, and how much, its flow decides. It starts and stops the source, so that a
/// source that does not return holds up nothing but this thread.
class Poller final : public runtime::Service {
 public:
  Poller(SharedFlow& flow, queue::Source& source, Duration visibility);

  Result<void> start() override;
  void stop() override { thread_.stop(); }
  bool stop_until(SteadyTime time) { return thread_.stop_until(time); }

 private:
  void run(const std::stop_token& stop);

  SharedFlow& flow_;
  queue::Source& source_;
  const Duration visibility_;
  ServiceThread thread_{"sluice-poller"};
};

}  // namespace sluice::work
