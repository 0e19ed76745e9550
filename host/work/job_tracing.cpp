#include "host/work/job_tracing.hpp"

#include "host/queue/effects.hpp"

namespace sluice::work {

namespace {

constexpr std::string_view kOutbox = "outbox:";
/// Of a message's ids: claim, handle, and then each try to settle.
constexpr std::uint64_t kHandleAfterClaim = 1;
constexpr std::uint64_t kSettleAfterClaim = 2;
constexpr std::uint64_t kMostSettles = observe::Tracer::kReserved - kSettleAfterClaim;

bool is_failure(plugin::OutcomeStatus status) {
  using plugin::OutcomeStatus;
  return status == OutcomeStatus::retry || status == OutcomeStatus::reject || status == OutcomeStatus::fault ||
         status == OutcomeStatus::crashed;
}

std::string_view action_name(queue::CompletionAction action) {
  switch (action) {
    case queue::CompletionAction::remove:
      return "remove";
    case queue::CompletionAction::retry:
      return "retry";
    case queue::CompletionAction::release:
      return "release";
    case queue::CompletionAction::dead_letter:
      break;
  }
  return "dead_letter";
}

std::string_view attribute_of(const queue::Message& message, std::string_view name) {
  const auto found = message.attributes.find(name);
  return found == message.attributes.end() ? std::string_view() : std::string_view(found->second);
}

/// Where the handler of a message is in its trace. Nothing where it is not known, or not sampled and not asked for.
std::optional<observe::TraceContext> handling_of(const queue::Message& message) {
  return observe::parse_traceparent(attribute_of(message, observe::kTraceParent));
}

/// The effects, with the trace in every message that names none of its own.
std::shared_ptr<const queue::Effects> carrying(const queue::Effects& effects, const queue::Message& message) {
  auto carried = std::make_shared<queue::Effects>(effects);
  const std::string_view state = attribute_of(message, observe::kTraceState);
  for (queue::EmittedMessage& emitted : carried->messages) {
    queue::Attributes& attributes = emitted.message.attributes;
    const auto [place, added] = attributes.emplace(observe::kTraceParent, attribute_of(message, observe::kTraceParent));
    if (added && !state.empty()) {
      attributes.emplace(observe::kTraceState, state);
    }
  }
  return carried;
}

}  // namespace

SpanNames SpanNames::of(std::string_view queue) {
  return queue.starts_with(kOutbox) ? SpanNames{"fetch", "publish", "mark"} : SpanNames();
}

void JobTracing::claimed(std::span<queue::Delivery> deliveries, SteadyTime began) {
  const SteadyTime ended = tracer_.now();
  for (queue::Delivery& delivery : deliveries) {
    queue::Message& message = delivery.message;
    const std::optional<observe::TraceContext> parent =
        observe::parse_traceparent(attribute_of(message, observe::kTraceParent));
    observe::TraceContext context = tracer_.begin(parent);
    std::string_view state;
    if (const auto found = message.attributes.find(observe::kTraceState); found != message.attributes.end()) {
      // Without a parent it belongs to no trace, and what cannot be read is not carried on.
      if (!parent || observe::usable_tracestate(found->second).empty()) {
        message.attributes.erase(found);
      } else {
        state = found->second;
      }
    }
    if (context.sampled) {
      tracer_.record({.context = context,
                      .parent = parent ? parent->span : 0,
                      .state = state,
                      .name = names_.claim,
                      .kind = observe::SpanKind::client,
                      .began = began,
                      .ended = ended,
                      .attributes = {{"messaging.system", "sluice"},
                                     {"messaging.operation.name", names_.claim},
                                     {"messaging.destination.name", queue_of(delivery.receipt.part)},
                                     {"messaging.message.id", message.id},
                                     {"messaging.batch.message_count", deliveries.size()},
                                     {"sluice.job", job_}}});
    }
    context.span += kHandleAfterClaim;
    message.attributes.insert_or_assign(std::string(observe::kTraceParent), observe::format_traceparent(context));
  }
}

plugin::Outcome JobTracing::handle(const Task& task, const std::function<plugin::Outcome()>& handler) {
  const std::optional<observe::TraceContext> context = handling_of(task.message);
  if (!context) {
    return handler();
  }
  const SteadyTime began = tracer_.now();
  plugin::Outcome outcome;
  {
    const observe::TraceScope scope(*context);
    outcome = handler();
  }
  if (context->sampled) {
    tracer_.record({.context = *context,
                    .parent = context->span - kHandleAfterClaim,
                    .state = attribute_of(task.message, observe::kTraceState),
                    .name = names_.handle,
                    .kind = observe::SpanKind::consumer,
                    .began = began,
                    .ended = tracer_.now(),
                    .failed = is_failure(outcome.status),
                    .reason = outcome.reason,
                    .attributes = {{"messaging.system", "sluice"},
                                   {"messaging.operation.name", names_.handle},
                                   {"messaging.destination.name", queue_of(task.part)},
                                   {"messaging.message.id", task.message.id},
                                   {"sluice.job", job_},
                                   {"sluice.handler", handler_},
                                   {"sluice.attempt", task.message.attempt},
                                   {"sluice.outcome", plugin::to_string(outcome.status)}}});
  }
  if (outcome.effects != nullptr && !outcome.effects->messages.empty()) {
    outcome.effects = carrying(*outcome.effects, task.message);
  }
  return outcome;
}

void JobTracing::settled(std::span<Task* const> tasks, std::span<const queue::Completion> completions,
                         std::span<const queue::SettleResult> results, SteadyTime began) {
  const SteadyTime ended = tracer_.now();
  const std::size_t count = std::min({tasks.size(), completions.size(), results.size()});
  for (std::size_t i = 0; i < count; ++i) {
    const Task& task = *tasks[i];
    std::optional<observe::TraceContext> context = handling_of(task.message);
    if (!context || !context->sampled) {
      continue;
    }
    const std::uint64_t claim = context->span - kHandleAfterClaim;
    context->span = claim + kSettleAfterClaim + std::min<std::uint64_t>(task.tries, kMostSettles);
    const queue::SettleResult& result = results[i];
    const bool applied = result.status == queue::SettleStatus::applied;
    const bool lost = result.status == queue::SettleStatus::lost;
    tracer_.record({.context = *context,
                    .parent = claim,
                    .state = attribute_of(task.message, observe::kTraceState),
                    .name = names_.settle,
                    .kind = observe::SpanKind::client,
                    .began = began,
                    .ended = ended,
                    .failed = !applied,
                    .reason = lost ? std::string_view("the receipt is no longer ours") : result.error.message(),
                    .attributes = {{"messaging.system", "sluice"},
                                   {"messaging.operation.name", names_.settle},
                                   {"messaging.destination.name", queue_of(task.part)},
                                   {"messaging.message.id", task.message.id},
                                   {"messaging.batch.message_count", tasks.size()},
                                   {"sluice.job", job_},
                                   {"sluice.action", action_name(completions[i].action)}}});
  }
}

}  // namespace sluice::work
