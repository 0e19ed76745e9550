#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "host/plugin/handler_instance.hpp"
#include "host/runtime/service.hpp"
#include "host/work/hand.hpp"
#include "host/work/service_thread.hpp"
#include "host/work/shared_flow.hpp"

namespace sluice::work {

/// The threads that run handlers, one attempt each at a time.
class WorkerPool final : public runtime::Service {
 public:
  struct Worker {
    Hand& hand;
    plugin::HandlerInstance& instance;
  };
  struct Settings {
    std::string queue;
    std::uint32_t max_attempts = 0;  ///< shown to handlers; 0: no limit
  };

  /// What `workers` refer to outlives the pool. Two workers share an instance only if it is concurrent.
  WorkerPool(SharedFlow& flow, Settings settings, std::vector<Worker> workers);

  Result<void> start() override;
  void stop() override;
  /// Stops the workers whose handler has returned, waiting until `time`; the others end when theirs does.
  void stop_idle_until(SteadyTime time);

 private:
  void run(std::uint32_t index, const std::stop_token& stop);
  void work_off(Worker& worker);

  SharedFlow& flow_;
  const Settings settings_;
  std::vector<Worker> workers_;
  std::deque<ServiceThread> threads_;
};

}  // namespace sluice::work
