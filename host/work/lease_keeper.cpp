#include "host/work/lease_keeper.hpp"

#include <utility>

namespace sluice::work {

LeaseKeeper::LeaseKeeper(SharedFlow& flow, queue::Source& source, Duration visibility)
    : flow_(flow), source_(source), visibility_(visibility) {}

Result<void> LeaseKeeper::start() {
  return thread_.start([this](const std::stop_token& stop) { run(stop); });
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
    auto results = source_.extend(order.receipts, visibility_, Deadline::at(order.deadline));
    flow_.run([&](JobFlow& flow, SteadyTime now, Notes& notes) {
      flow.extended(std::move(order), std::move(results), now, notes);
    });
  }
}

}  // namespace sluice::work
