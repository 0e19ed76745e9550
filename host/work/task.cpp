#include "host/work/task.hpp"

#include "base/guard.hpp"
#include "host/queue/effects.hpp"

namespace sluice::work {

Duration RetryPolicy::grown(std::uint32_t attempt) const {
  const Duration base = std::max(config_.base, Duration::zero());
  const Duration max = std::max(config_.max, Duration::zero());
  const std::uint32_t failures = std::max(attempt, 1U);
  if (config_.backoff == config::Backoff::constant || base == Duration::zero()) {
    return std::min(base, max);
  }
  if (config_.backoff == config::Backoff::linear) {
    return base > max / failures ? max : base * failures;
  }
  // Compared by shifting the maximum down, so that nothing overflows.
  const std::uint32_t doublings = failures - 1;
  if (doublings >= 62 || base.count() > (max.count() >> doublings)) {
    return max;
  }
  return Duration(base.count() << doublings);
}

Duration RetryPolicy::delay(std::uint32_t attempt, Random& random) const {
  const Duration full = grown(attempt);
  const auto part = [&](Duration span) {
    return Duration(static_cast<Duration::rep>(static_cast<double>(span.count()) * random.unit()));
  };
  switch (config_.jitter) {
    case config::Jitter::none:
      return full;
    case config::Jitter::full:
      return part(full);
    case config::Jitter::equal:
      return full / 2 + part(full - full / 2);
  }
  return full;
}

namespace {

using plugin::OutcomeStatus;
using queue::CompletionAction;

Duration bounded(Duration delay) { return std::clamp(delay, Duration::zero(), kMaxDelay); }

// Without the time, which the settler stamps when it writes.
queue::Failure failure(std::string error, std::uint32_t attempt, const FailurePolicy& policy) {
  queue::Failure why;
  why.error = std::move(error);
  why.handler = policy.handler;
  why.host = policy.host;
  why.attempts = attempt;
  return why;
}

// A message whose handler is not known to be harmless stays under suspicion for as long as it is tried.
bool casts_suspicion(OutcomeStatus status) { return status == OutcomeStatus::crashed; }

Disposition give_up(std::string reason, std::uint32_t attempt, const FailurePolicy& policy) {
  queue::Failure why = failure(std::move(reason), attempt, policy);
  switch (policy.dead_letter) {
    case config::DeadLetterPolicy::move:
      return {.action = CompletionAction::dead_letter,
              .failure = std::move(why),
              .ending = Ending::rejected,
              .hold_group = policy.hold};
    case config::DeadLetterPolicy::discard:
      return {.action = CompletionAction::remove, .ending = Ending::discarded};
    case config::DeadLetterPolicy::keep:
      break;
  }
  why.wait = bounded(policy.retry.longest());
  const Duration wait = why.wait;
  return {CompletionAction::retry, wait, std::move(why), Ending::retried, false};
}

/// For what no handler has said anything of: it is never discarded.
FailurePolicy not_discarding(FailurePolicy policy) {
  if (policy.dead_letter == config::DeadLetterPolicy::discard && SLUICE_GUARD(unseen_not_discarded)) {
    policy.dead_letter = policy.in_dlq ? config::DeadLetterPolicy::keep : config::DeadLetterPolicy::move;
  }
  return policy;
}

std::string reason_of(const plugin::Outcome& outcome) {
  if (!outcome.reason.empty()) {
    return outcome.reason;
  }
  if (outcome.status == OutcomeStatus::crashed) {
    return "the handler's process ended without a reason";
  }
  return outcome.status == OutcomeStatus::fault ? "the handler failed without a reason" : "";
}

Disposition try_again(const plugin::Outcome& outcome, std::uint32_t attempt, const FailurePolicy& policy,
                      Random& random) {
  const bool suspect = casts_suspicion(outcome.status);
  if (policy.retry.used_up(attempt)) {
    Disposition last = give_up(reason_of(outcome), attempt, policy);
    last.suspect = suspect && last.action == CompletionAction::retry;
    return last;
  }
  // A fault names no delay that could be trusted.
  const bool named = outcome.status == OutcomeStatus::retry && outcome.delay.has_value();
  const Duration delay = named ? *outcome.delay : policy.retry.delay(attempt, random);
  queue::Failure why = failure(reason_of(outcome), attempt, policy);
  why.wait = bounded(delay);
  return {CompletionAction::retry, bounded(delay), std::move(why), Ending::retried, suspect};
}

}  // namespace

FailurePolicy::FailurePolicy(const config::JobConfig& config, std::string host_name)
    : retry(config.retry), dead_letter(config.dead_letter), handler(config.handler), host(std::move(host_name)) {
  in_dlq = config.source == config::Source::dlq;
  hold = config.on_dead_letter == config::OnDeadLetter::hold;
  if (in_dlq && dead_letter == config::DeadLetterPolicy::move) {
    dead_letter = config::DeadLetterPolicy::keep;
  }
}

Disposition dispose(const plugin::Outcome& outcome, std::uint32_t attempt, const FailurePolicy& policy,
                    Random& random) {
  switch (outcome.status) {
    case OutcomeStatus::done:
      return {CompletionAction::remove, Duration::zero(), {}, Ending::done, false, outcome.effects};
    case OutcomeStatus::discard:
      return {.action = CompletionAction::remove, .ending = Ending::discarded};
    case OutcomeStatus::snooze:
      return {CompletionAction::release, bounded(outcome.delay.value_or(Duration::zero())), {}, Ending::snoozed, false};
    case OutcomeStatus::release:
      return put_back(false);
    case OutcomeStatus::reject:
      return give_up(reason_of(outcome), attempt, policy);
    case OutcomeStatus::retry:
    case OutcomeStatus::fault:
    case OutcomeStatus::crashed:
      break;
  }
  return try_again(outcome, attempt, policy, random);
}

Disposition dispose_unseen(std::string why, bool suspect, std::uint32_t attempt, const FailurePolicy& policy) {
  Disposition disposition = give_up(std::move(why), attempt - std::min(attempt, 1U), not_discarding(policy));
  if (disposition.action == CompletionAction::retry) {
    // It stays where it is, with its attempt and with the failure that is known.
    return {CompletionAction::release, disposition.delay, {}, Ending::snoozed, suspect};
  }
  return disposition;
}

Disposition dispose_exhausted(std::uint32_t attempt, const FailurePolicy& policy) {
  Disposition disposition =
      give_up("all " + std::to_string(policy.retry.max_attempts()) +
                  " attempts are used up; the last one ended without an outcome: its process died, or its handler was "
                  "stuck when it was ended",
              attempt - 1, not_discarding(policy));
  if (disposition.action == CompletionAction::retry) {
    // A kept message comes by here again and again; why its last attempt failed is worth more than that it did.
    disposition.failure = {};
  }
  return disposition;
}

Disposition dispose_crash(std::string why, std::uint32_t attempt, const FailurePolicy& policy, Random& random) {
  return try_again({OutcomeStatus::crashed, {}, std::move(why)}, attempt, policy, random);
}

Disposition dispose_refused(const std::string& why, bool reject, std::uint32_t attempt, const FailurePolicy& policy,
                            Random& random) {
  return dispose({reject ? OutcomeStatus::reject : OutcomeStatus::retry, {}, why}, attempt, policy, random);
}

Disposition put_back(bool suspect) {
  return {CompletionAction::release, Duration::zero(), {}, Ending::released, suspect};
}

queue::Completion completion_of(queue::Receipt receipt, Disposition&& disposition, WallTime now) {
  if (!disposition.failure.empty()) {
    disposition.failure.failed_at = now;
  }
  return {.receipt = std::move(receipt),
          .action = disposition.action,
          .delay = disposition.delay,
          .failure = std::move(disposition.failure),
          .suspect = disposition.suspect,
          .effects = std::move(disposition.effects),
          .hold_group = disposition.hold_group};
}

bool Task::commits_statements() const {
  const auto& effects = disposition.effects;
  return effects && std::any_of(effects->writes.begin(), effects->writes.end(), [](const queue::EffectWrite& write) {
           return std::holds_alternative<queue::SqlWrite>(write.write);
         });
}

}  // namespace sluice::work
