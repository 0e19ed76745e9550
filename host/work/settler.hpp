#pragma once

#include "host/queue/source.hpp"
#include "host/runtime/service.hpp"
#include "host/work/service_thread.hpp"
#include "host/work/shared_flow.hpp"

namespace sluice::work {

/// The thread that writes one job's settlements.
class Settler final : public runtime::Service {
 public:
  Settler(SharedFlow& flow, queue::Source& source);

  Result<void> start() override;
  void stop() override { thread_.stop(); }
  bool stop_until(SteadyTime time) { return thread_.stop_until(time); }

 private:
  void run(const std::stop_token& stop);

  SharedFlow& flow_;
  queue::Source& source_;
  ServiceThread thread_{"sluice-settler"};
};

}  // namespace sluice::work
