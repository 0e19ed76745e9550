#pragma once

#include "host/observe/tracer.hpp"
#include "host/work/task.hpp"

namespace sluice::work {

/// How a job calls what it does with a message, in traces. A value.
struct SpanNames {
  std::string_view claim = "claim";
  std::string_view handle = "handle";
  std::string_view settle = "settle";

  /// Those of a job of that queue: an outbox's rows are fetched, published and marked.
  static SpanNames of(std::string_view queue);
};

/// A job's messages in traces: three spans each, claim, and below it handle and settle. Exists where tracing is on.
/// Thread-safe; asks nobody, and keeps nothing: where a message is in its trace the message itself says.
///
/// A message that is claimed gets a place of its own in the trace that its `traceparent` names, or in a new one, and
/// carries it as its `traceparent` from then on, the claim's span before it. So a handler reads what it is to hand on,
/// and messages that it sends have it already.
class JobTracing {
 public:
  /// `queues` by the part of their source. The tracer outlives it.
  JobTracing(observe::Tracer& tracer, const config::JobConfig& job, std::vector<std::string> queues)
      : tracer_(tracer),
        job_(job.name),
        handler_(job.handler),
        queues_(std::move(queues)),
        names_(SpanNames::of(queues_.front())) {}

  SteadyTime now() const { return tracer_.now(); }

  /// These were claimed by a call that began then.
  void claimed(std::span<queue::Delivery> deliveries, SteadyTime began);
  /// Runs the handler: what the thread logs meanwhile is of the message's trace, and so is what the handler sends.
  plugin::Outcome handle(const Task& task, const std::function<plugin::Outcome()>& handler);
  /// A call that began then has settled these, in the order of the results.
  void settled(std::span<Task* const> tasks, std::span<const queue::Completion> completions,
               std::span<const queue::SettleResult> results, SteadyTime began);

 private:
  const std::string& queue_of(std::uint16_t part) const {
    return queues_[std::min<std::size_t>(part, queues_.size() - 1)];
  }

  observe::Tracer& tracer_;
  const std::string job_;
  const std::string handler_;
  const std::vector<std::string> queues_;
  const SpanNames names_;
};

}  // namespace sluice::work
