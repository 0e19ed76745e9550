#pragma once

#include "host/isolation/runner.hpp"
#include "host/queue/operator.hpp"
#include "host/runtime/job_plan.hpp"
#include "host/work/job.hpp"

/// One message through one handler, here and now, by the engine that every job has: its policy decides what becomes of
/// the message, and nothing else of a host is needed.
namespace sluice::runtime {

/// Which handler runs, and how. A value.
struct OneRun {
  JobPlan plan;  ///< no time-out of it counts
  plugin::EffectRules effects{};
  isolation::OpenPlugin file;  ///< of the plugin, for a process of the handler's own; null: it runs in this one
  std::vector<isolation::RunnerAround> arounds{};  ///< of the plan, for that process
  std::string host;                                ///< this host's name, written into failures
  work::QueueLease lease{};                        ///< of the message's queue
};

/// What a run works with. All of it outlives the run.
struct OneRunSeams {
  const Clock& clock;
  Random& random;
  const plugin::HandlerLog& log;  ///< the handler's lines, as they come
  observe::Log& host_log;         ///< what the job itself has to say
  /// Where the message was claimed and its end is written; null: nothing is written anywhere.
  queue::Source* source = nullptr;
  /// Opens a queue's idempotency keys, as JobSeams; empty: there are none, and the job is run as if it had none.
  std::function<Result<std::unique_ptr<queue::IdempotencyKeys>>(const std::string& queue)> keys{};
  int stop = -1;  ///< a descriptor; once it is readable the run is given up. -1: there is none
};

/// Runs the handler on the message and returns what came of it, once that is written where there is a source. However
/// long the handler takes. Its process may crash: that is an outcome. Errors: `invalid` where the handler refuses its
/// options, `cancelled` after a stop; the message is put back then, if it was claimed.
Result<work::AttemptEnd> run_one_message(const OneRun& run, queue::Delivery delivery, const OneRunSeams& seams);

/// A message as a store would hand it out for attempt number `attempt`, for a run without a source.
queue::Delivery handed_out(queue::Message message, std::uint32_t attempt);

/// A message that an operator names, wherever it lies in its queue. A value.
struct NamedMessage {
  std::string queue;
  queue::StoredMessage record;
};

/// Claims that very message from its half of the queue, before whatever waits there: it is brought to the front, and
/// others that come first are put back at once with their attempts. `conflict` where somebody has it at work or takes
/// it first, or the queue does not hand it out because others of its group come first.
Result<queue::Delivery> claim_named(const NamedMessage& message, queue::Operator& oper, queue::Source& source,
                                    const work::QueueLease& lease, const Clock& clock);

}  // namespace sluice::runtime
