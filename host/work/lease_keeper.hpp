#pragma once

#include "host/queue/source.hpp"
#include "host/runtime/service.hpp"
#include "host/work/service_thread.hpp"
#include "host/work/shared_flow.hpp"

namespace sluice::work {

/// The thread that extends what one job works on. Its own, so that no claim or settlement, however slow, lets a lease
/// run out.
class LeaseKeeper final : public runtime::Service {
 public:
  LeaseKeeper(SharedFlow& flow, queue::Source& source, Duration visibility);

  Result<void> start() override;
  void stop() override { thread_.stop(); }
  bool stop_until(SteadyTime time) { return thread_.stop_until(time); }

 private:
  void run(const std::stop_token& stop);

  SharedFlow& flow_;
  queue::Source& source_;
  const Duration visibility_;
  ServiceThread thread_{"sluice-leases"};
};

}  // namespace sluice::work
