#include "host/work/poller.hpp"

#include <utility>

namespace sluice::work {

Poller::Poller(SharedFlow& flow, queue::Source& source, Duration visibility)
    : flow_(flow), source_(source), visibility_(visibility) {}

Result<void> Poller::start() {
  return thread_.start([this](const std::stop_token& stop) { run(stop); });
}

void Poller::run(const std::stop_token& stop) {
  source_.start({.on_ready = [this] { flow_.run([](JobFlow& flow, SteadyTime, Notes& notes) { flow.wake(notes); }); },
                 .lost =
                     [this](std::span<const queue::Receipt> receipts) {
                       flow_.run([&](JobFlow& flow, SteadyTime, Notes& notes) { flow.taken_back(receipts, notes); });
                     }});
  std::uint64_t seen = 0;
  while (!stop.stop_requested()) {
    const JobFlow::ClaimOrder order =
        flow_.run([](JobFlow& flow, SteadyTime now, Notes&) { return flow.next_claim(now); });
    if (order.count == 0) {
      flow_.wait_poller(seen, stop, order.wake);
      continue;
    }
    auto claimed =
        source_.claim({.max = order.count, .bytes = kClaimBytes, .visibility = visibility_, .suspects = true},
                      Deadline::after(flow_.clock(), kStoreTimeout));
    flow_.run([&](JobFlow& flow, SteadyTime now, Notes& notes) { flow.claimed(std::move(claimed), now, notes); });
  }
  source_.stop();
}

}  // namespace sluice::work
