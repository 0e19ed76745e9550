#pragma once

#include "host/queue/store.hpp"
#include "host/runtime/service.hpp"
#include "host/work/service_thread.hpp"
#include "host/work/shared_flow.hpp"

namespace sluice::work {

/// The thread that extends what one job works on. Its own, so that no claim or settlement, however slow, lets a lease
/// run out.
class LeaseKeeper final : public runtime::Service {
 public:
  LeaseKeeper(SharedFlow& flow, queue::Store& store, queue::QueueAddress address, Duration visibility);

  void start() override;
  void stop() override { thread_.stop(); }
  bool stop_until(SteadyTime time) { return thread_.stop_until(time); }

 private:
  void run(const std::stop_token& stop);

  SharedFlow& flow_;
  queue::Store& store_;
  const queue::QueueAddress address_;
  const Duration visibility_;
  ServiceThread thread_{"sluice-leases"};
};

}  // namespace sluice::work
