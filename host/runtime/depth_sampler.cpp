#include "host/runtime/depth_sampler.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "base/guard.hpp"

namespace sluice::runtime {
namespace {

constexpr Duration kSampleTimeout = std::chrono::seconds(20);

}  // namespace

DepthSampler::DepthSampler(Addresses addresses, queue::Queues& queues, observe::Metrics& metrics, const Clock& clock,
                           Duration interval, Limits limits)
    : addresses_(std::move(addresses)),
      queues_(queues),
      metrics_(metrics),
      clock_(clock),
      interval_(interval),
      limits_(std::move(limits)) {}

DepthSampler::~DepthSampler() { stop(); }

Result<void> DepthSampler::start() {
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  } catch (const std::system_error& error) {
    return Error(ErrorCode::unavailable, "cannot make the thread that counts queues: " + error.code().message());
  }
  return {};
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

std::optional<QueueDepth> DepthSampler::depth(const std::string& queue) const {
  const MutexLock lock(mutex_);
  const auto found = depths_.find(queue);
  return found == depths_.end() ? std::nullopt : std::optional(found->second);
}

std::map<std::string, QueueDepth> DepthSampler::depths() const {
  const MutexLock lock(mutex_);
  return depths_;
}

bool DepthSampler::leave() {
  {
    const MutexLock lock(mutex_);
    leaving_ = true;
    if (sampling_ && SLUICE_GUARD(hung_sampler_left)) {
      thread_.request_stop();
      return false;
    }
  }
  stop();
  return true;
}

void DepthSampler::run(const std::stop_token& stop) {
  while (begin_sample(stop)) {
    const SteadyTime next = clock_.steady_now() + interval_;
    bool all = false;
    {
      const MutexLock lock(mutex_);
      all = std::exchange(asked_, false);
    }
    sample(stop, all);
    const MutexLock lock(mutex_);
    sampling_ = false;
    changed_.wait_until(mutex_, stop, next, [] { return false; });
  }
}

bool DepthSampler::begin_sample(const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  sampling_ = changed_.wait(mutex_, stop, [this]() SLUICE_NO_TSA { return asked_ || !limits_.empty(); }) && !leaving_;
  return sampling_;
}

std::map<std::string, DepthSampler::Lag> DepthSampler::lags() const {
  std::map<std::string, Lag> lags;
  for (const auto& [name, depth] : depths()) {
    const auto limit = limits_.find(name);
    lags[name] = {depth.oldest, limit == limits_.end() ? Duration::zero() : limit->second};
  }
  return lags;
}

void DepthSampler::sample(const std::stop_token& stop, bool all) {
  std::set<std::string> names;
  for (const queue::QueueAddress& address : addresses_()) {
    if (all || limits_.contains(address.queue)) {
      names.insert(address.queue);
    }
  }
  for (const std::string& name : names) {
    if (stop.stop_requested()) {
      return;
    }
    sample(name);
  }
}

void DepthSampler::sample(const std::string& name) {
  auto& opened = operators_[name];
  if (!opened) {
    auto again = queues_.open_operator(name);
    if (!again) {
      return;
    }
    opened = std::move(*again);
  }
  const SteadyTime asked_at = clock_.steady_now();
  const Deadline deadline = Deadline::after(clock_, kSampleTimeout);
  const auto standard = opened->stats({.half = queue::Half::standard, .cheap = true}, deadline);
  if (!standard) {
    return;  // The claims of the same queue report the failure; the gauges keep their last value.
  }
  const auto dlq = opened->stats({.half = queue::Half::dlq, .cheap = true}, deadline);
  if (!dlq) {
    return;
  }
  QueueDepth depth{.standard = *standard, .dlq = *dlq, .at = asked_at};
  if (standard->oldest_ready) {
    depth.oldest = std::max(Duration(clock_.wall_now() - *standard->oldest_ready), Duration::zero());
  }
  {
    const MutexLock lock(mutex_);
    depths_[name] = depth;
  }
  metrics_.queue_depth(name, "ready", static_cast<double>(standard->ready));
  metrics_.queue_depth(name, "in_flight", static_cast<double>(standard->in_flight));
  metrics_.queue_depth(name, "delayed", static_cast<double>(standard->delayed));
  metrics_.queue_oldest(name, depth.oldest);
  metrics_.queue_depth(name, "dlq", static_cast<double>(dlq->total()));
}

}  // namespace sluice::runtime
