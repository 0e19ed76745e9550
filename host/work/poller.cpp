#include "host/work/poller.hpp"

#include <utility>

namespace sluice::work {

Poller::Poller(SharedFlow& flow, queue::Store& store, queue::QueueAddress address, Duration visibility)
    : flow_(flow), store_(store), address_(std::move(address)), visibility_(visibility) {}

void Poller::start() {
  thread_.start([this](const std::stop_token& stop) { run(stop); });
}

void Poller::run(const std::stop_token& stop) {
  std::uint64_t seen = 0;
  while (!stop.stop_requested()) {
    const JobFlow::ClaimOrder order =
        flow_.run([](JobFlow& flow, SteadyTime now, Notes&) { return flow.next_claim(now); });
    if (order.count == 0) {
      flow_.wait_poller(seen, stop, order.wake);
      continue;
    }
    auto claims = store_.claim(address_, order.count, visibility_, Deadline::after(flow_.clock(), kStoreTimeout));
    flow_.run([&](JobFlow& flow, SteadyTime now, Notes& notes) { flow.claimed(std::move(claims), now, notes); });
  }
}

}  // namespace sluice::work
