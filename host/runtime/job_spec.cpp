#include "host/runtime/job_spec.hpp"

#include <algorithm>

#include "host/runtime/isolation_ward.hpp"

namespace sluice::runtime {

namespace {

/// A worker whose Runner is about to be killed is not stuck.
constexpr Duration kBeyondKill = std::chrono::seconds(2);

/// The shortest of its queues: leases are extended in time for each of them.
Duration visibility_of(const config::HostConfig& host, const config::JobConfig& job) {
  Duration shortest = host.queue(job.queue).visibility_timeout;
  for (const config::WeightedQueue& queue : job.queues) {
    shortest = std::min(shortest, host.queue(queue.name).visibility_timeout);
  }
  return shortest;
}

}  // namespace

work::JobSpec job_spec(const JobPlan& plan, const config::HostConfig& config, const std::string& host) {
  const config::QueueConfig queue = config.queue(plan.config.queue);
  work::JobSpec spec;
  spec.config = plan.config;
  spec.handler = plan.handler;
  spec.options = plan.options;
  spec.visibility_timeout = visibility_of(config, plan.config);
  spec.max_in_flight = queue.max_in_flight;
  spec.max_lease = queue.max_lease;
  for (const config::WeightedQueue& one : plan.config.queues) {
    const config::QueueConfig own = config.queue(one.name);
    spec.leases.push_back({own.visibility_timeout, own.max_lease});
  }
  spec.host = host;
  spec.store = config.store_of(plan.config.queue).kind;
  spec.isolated = plan.config.isolation == config::Isolation::process;
  if (spec.isolated) {
    spec.stuck_grace = kill_grace(plan.config) + kBeyondKill;
  }
  return spec;
}

}  // namespace sluice::runtime
