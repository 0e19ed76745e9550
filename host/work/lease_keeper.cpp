#include "host/work/lease_keeper.hpp"

#include <utility>

namespace sluice::work {

LeaseKeeper::LeaseKeeper(SharedFlow& flow, queue::Store& store, queue::QueueAddress address, Duration visibility)
    : flow_(flow), store_(store), address_(std::move(address)), visibility_(visibility) {}

void LeaseKeeper::start() {
  thread_.start([this](const std::stop_token& stop) { run(stop); });
}

void LeaseKeeper::run(const std::stop_token& stop) {
  std::uint64_t seen = 0;
  while (!stop.stop_requested()) {
    JobFlow::ExtendOrder order =
        flow_.run([](JobFlow& flow, SteadyTime now, Notes& notes) { return flow.next_extension(now, notes); });
    if (order.tasks.empty()) {
      flow_.wait_keeper(seen, stop, order.wake);
      continue;
    }
    auto results = store_.extend(address_, order.receipts, visibility_, Deadline::at(order.deadline));
    flow_.run([&](JobFlow& flow, SteadyTime now, Notes& notes) {
      flow.extended(std::move(order), std::move(results), now, notes);
    });
  }
}

}  // namespace sluice::work
