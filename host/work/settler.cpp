#include "host/work/settler.hpp"

#include <utility>

namespace sluice::work {

Settler::Settler(SharedFlow& flow, queue::Store& store, queue::QueueAddress address)
    : flow_(flow), store_(store), address_(std::move(address)) {}

void Settler::start() {
  thread_.start([this](const std::stop_token& stop) { run(stop); });
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
    auto results = store_.settle(address_, order.settlements, Deadline::at(order.deadline));
    flow_.run([&](JobFlow& flow, SteadyTime now, Notes& notes) {
      flow.settled(std::move(order), std::move(results), now, notes);
    });
  }
}

}  // namespace sluice::work
