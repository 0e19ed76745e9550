#pragma once

#include "host/queue/store.hpp"
#include "host/runtime/service.hpp"
#include "host/work/service_thread.hpp"
#include "host/work/shared_flow.hpp"

namespace sluice::work {

/// The thread that writes one job's settlements.
class Settler final : public runtime::Service {
 public:
  Settler(SharedFlow& flow, queue::Store& store, queue::QueueAddress address);

  void start() override;
  void stop() override { thread_.stop(); }
  bool stop_until(SteadyTime time) { return thread_.stop_until(time); }

 private:
  void run(const std::stop_token& stop);

  SharedFlow& flow_;
  queue::Store& store_;
  const queue::QueueAddress address_;
  ServiceThread thread_{"sluice-settler"};
};

}  // namespace sluice::work
