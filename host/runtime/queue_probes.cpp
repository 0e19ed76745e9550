#include "host/runtime/queue_probes.hpp"

#include <set>

#include "base/guard.hpp"

namespace sluice::runtime {

namespace {

constexpr Duration kSampleTimeout = std::chrono::seconds(20);

constexpr Duration kStatsTimeout = std::chrono::seconds(20);

bool forbids_start(ErrorCode code) {
  return code == ErrorCode::queue_missing || code == ErrorCode::denied || code == ErrorCode::corrupt ||
         code == ErrorCode::invalid;
}

}  // namespace

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

Result<bool> EmptyCheck::empty(const std::vector<queue::QueueAddress>& addresses) {
  // The cheap look first; it reads an index, which lags behind the table.
  for (const bool consistent : {false, SLUICE_GUARD(index_lag)}) {
    for (const queue::QueueAddress& address : addresses) {
      auto counted = empty(address, consistent);
      if (!counted) {
        return Error(counted.error().code(),
                     "cannot count what is left in queue " + address.queue + ": " + counted.error().message());
      }
      if (!*counted) {
        return false;
      }
    }
  }
  return true;
}

Result<bool> EmptyCheck::empty(const queue::QueueAddress& address, bool consistent) {
  auto& opened = operators_[address.queue];
  if (!opened) {
    SLUICE_TRY(again, queues_.open_operator(address.queue));
    opened = std::move(*again);
  }
  const auto stats =
      opened->stats({.half = address.half, .consistent = consistent}, Deadline::after(clock_, kStatsTimeout));
  SLUICE_PASS_ON(stats);
  return stats->ready == 0 && stats->in_flight == 0;
}

Result<void> QueueProbe::start(std::vector<std::string> queues, std::function<void()> ended) {
  std::sort(queues.begin(), queues.end());
  queues.erase(std::unique(queues.begin(), queues.end()), queues.end());
  return thread_.start([this, queues = std::move(queues), ended = std::move(ended)](const std::stop_token& stop) {
    auto verdict = look(queues, stop);
    {
      const MutexLock lock(mutex_);
      verdict_ = std::move(verdict);
    }
    ended();
  });
}

QueueProbe::Verdict QueueProbe::look(const std::vector<std::string>& queues, const std::stop_token& stop) {
  const Deadline deadline = Deadline::after(clock_, kTimeout);
  for (const std::string& queue : queues) {
    const auto opened = open(queue, stop);
    if (!opened) {
      return {Refusal{queue, opened.error()}};
    }
    const auto page = (*opened)->list({.limit = 1, .content = false}, deadline);
    if (page) {
      continue;
    }
    if (forbids_start(page.error().code())) {
      return {Refusal{queue, page.error()}};
    }
    log_.warn("queue does not answer yet", {{"queue", queue}, {"error", page.error().message()}});
  }
  return {};
}

Result<std::unique_ptr<queue::Operator>> QueueProbe::open(const std::string& queue, const std::stop_token& stop) {
  std::string told;
  while (true) {
    auto opened = queues_.open_operator(queue);
    if (opened || forbids_start(opened.error().code())) {
      return opened;
    }
    if (opened.error().message() != told) {
      told = opened.error().message();
      log_.warn("the store of a queue cannot be opened yet; trying again", {{"queue", queue}, {"error", told}});
    }
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, stop, clock_.steady_now() + kOpenAgain, [] { return false; });
    if (stop.stop_requested()) {
      return opened;
    }
  }
}

}  // namespace sluice::runtime
