#pragma once

#include "base/text/joined.hpp"
#include "host/work/idempotency_gate.hpp"

/// The queues that a job draws from, as its file names them.
namespace sluice::work {

/// One, or several by their weights; a receipt's `part` counts along this list.
inline std::vector<config::WeightedQueue> queues_of(const config::JobConfig& job) {
  return job.queues.empty() ? std::vector<config::WeightedQueue>{{job.queue, 1}} : job.queues;
}

/// The one that a part is of.
template <typename Queue>
const Queue& queue_of(const std::vector<Queue>& queues, std::size_t part) {
  return queues[std::min(part, queues.size() - 1)];
}

inline std::vector<queue::QueueAddress> addresses_of(const config::JobConfig& job) {
  const queue::Half half = job.source == config::Source::dlq ? queue::Half::dlq : queue::Half::standard;
  std::vector<queue::QueueAddress> all;
  for (const config::WeightedQueue& queue : queues_of(job)) {
    all.push_back({queue.name, half});
  }
  return all;
}

/// "orders", or "urgent,bulk": names have no commas.
inline std::string queue_text(const config::JobConfig& job) { return joined(job.queue_names(), ","); }

/// The job's name where its idempotency keys are its messages' own ids, as ClaimRequest's; else nothing.
inline std::string own_ids_of(const config::JobConfig& job) {
  return job.idempotency && MessageKey(*job.idempotency).own_id() ? job.name : std::string();
}

/// How the job wants its claims made.
inline queue::ClaimRules rules_of(const config::JobConfig& job, std::uint64_t max_in_flight) {
  queue::ClaimRules rules{.max_in_flight = max_in_flight};
  rules.order = job.order == config::Order::group   ? queue::Order::group
                : job.order == config::Order::queue ? queue::Order::queue
                                                    : queue::Order::none;
  rules.fair = job.fair;
  rules.weights = {static_cast<std::uint16_t>(job.priorities.critical), static_cast<std::uint16_t>(job.priorities.high),
                   static_cast<std::uint16_t>(job.priorities.normal), static_cast<std::uint16_t>(job.priorities.low)};
  return rules;
}

}  // namespace sluice::work
