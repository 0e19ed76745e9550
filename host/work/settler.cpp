#include "host/work/settler.hpp"

#include <utility>

namespace sluice::work {

Settler::Settler(SharedFlow& flow, queue::Source& source) : flow_(flow), source_(source) {}

Result<void> Settler::start() {
  return thread_.start([this](const std::stop_token& stop) { run(stop); });
}

void Settler::run(const std::stop_token& stop) {
  std::uint64_t seen = 0;
  while (!stop.stop_requested()) {
    JobFlow::SettleOrder order = flow_.run([this](JobFlow& flow, SteadyTime now, Notes& notes) {
      return flow.next_settlement(now, flow_.clock().wall_now(), notes);
    });
    if (order.tasks.empty()) {
      flow_.wait_settler(seen, stop, order.wake);
      continue;
    }
    auto results = source_.settle(order.completions, Deadline::at(order.deadline));
    flow_.run([&](JobFlow& flow, SteadyTime now, Notes& notes) {
      flow.settled(std::move(order), std::move(results), now, notes);
    });
  }
}

}  // namespace sluice::work
