#include "host/runtime/depth_sampler.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace sluice::runtime {
namespace {

constexpr Duration kSampleTimeout = std::chrono::seconds(20);

}  // namespace

DepthSampler::DepthSampler(Addresses addresses, queue::Store& store, observe::Metrics& metrics, const Clock& clock,
                           Duration interval)
    : addresses_(std::move(addresses)), store_(store), metrics_(metrics), clock_(clock), interval_(interval) {}

DepthSampler::~DepthSampler() { stop(); }

void DepthSampler::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void DepthSampler::stop() {
  const MutexLock lock(stopping_);
  thread_.request_stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void DepthSampler::asked() {
  {
    const MutexLock lock(mutex_);
    asked_ = true;
  }
  changed_.notify_all();
}

void DepthSampler::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      const MutexLock lock(mutex_);
      if (!changed_.wait(mutex_, stop, [this]() SLUICE_NO_TSA { return asked_; })) {
        return;
      }
    }
    const SteadyTime next = clock_.steady_now() + interval_;
    sample();
    const MutexLock lock(mutex_);
    asked_ = false;
    changed_.wait_until(mutex_, stop, next, [] { return false; });
  }
}

void DepthSampler::sample() {
  std::set<std::string> queues;
  for (const queue::QueueAddress& address : addresses_()) {
    queues.insert(address.queue);
  }
  for (const std::string& queue : queues) {
    const Deadline deadline = Deadline::after(clock_, kSampleTimeout);
    const auto standard = store_.stats({queue, queue::QueueType::standard}, deadline);
    const auto dlq = store_.stats({queue, queue::QueueType::dlq}, deadline);
    if (!standard || !dlq) {
      continue;  // The claims of the same queue report the failure; the gauges keep their last value.
    }
    metrics_.queue_depth(queue, "ready", static_cast<double>(standard->ready));
    metrics_.queue_depth(queue, "in_flight", static_cast<double>(standard->in_flight));
    metrics_.queue_depth(queue, "delayed", static_cast<double>(standard->delayed));
    metrics_.queue_depth(queue, "dlq", static_cast<double>(dlq->total()));
  }
}

}  // namespace sluice::runtime
