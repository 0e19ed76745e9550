#pragma once

#include <cstdint>
#include <utility>

#include "host/runtime/service.hpp"
#include "host/work/service_thread.hpp"
#include "host/work/shared_flow.hpp"

namespace sluice::work {

/// The thread that makes one kind of call for a job: asks the flow for an order, waits where there is none, carries it
/// out without the lock, and reports what came of it. When, and what, the flow decides.
///
/// A `Call` says what kind it is: `kCaller`, `kName`, `Order next(flow, now, notes)`, `bool empty(order)`, the answer
/// of `make(order)`, `report(flow, order, answer, now, notes)`, and what comes before the first and after the last of
/// them. What `report` leaves of order and answer is freed without the lock.
template <typename Call>
class CallLoop final : public runtime::Service {
 public:
  CallLoop(SharedFlow& flow, Call call) : flow_(flow), call_(std::move(call)), thread_(Call::kName) {}

  Result<void> start() override {
    return thread_.start([this](const std::stop_token& stop) { run(stop); });
  }
  void stop() override { thread_.stop(); }
  bool stop_until(SteadyTime time) { return thread_.stop_until(time); }
  bool running() { return thread_.running(); }

 private:
  void run(const std::stop_token& stop) {
    call_.begin(flow_);
    std::uint64_t seen = 0;
    while (!stop.stop_requested()) {
      auto order =
          flow_.run([this](JobFlow& flow, SteadyTime now, StepEffects& notes) { return call_.next(flow, now, notes); });
      if (Call::empty(order)) {
        flow_.wait(Call::kCaller, seen, stop, order.wake);
        continue;
      }
      auto answer = call_.make(order);
      flow_.run([&](JobFlow& flow, SteadyTime now, StepEffects& notes) {
        Call::report(flow, std::move(order), std::move(answer), now, notes);
      });
    }
    call_.end();
  }

  SharedFlow& flow_;
  Call call_;
  ServiceThread thread_;
};

}  // namespace sluice::work
