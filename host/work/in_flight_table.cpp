#include "host/work/in_flight_table.hpp"

#include "host/observe/trace_context.hpp"

namespace sluice::work {
namespace {

using plugin::OutcomeStatus;
using queue::CompletionAction;

// What the record says of a message stays as it is.
constexpr std::nullopt_t kUnchanged = std::nullopt;

Duration bounded(Duration delay) { return std::clamp(delay, Duration::zero(), kMaxDelay); }

// Without the time, which the settler stamps when it writes.
std::unique_ptr<queue::Failure> failure(std::string error, std::uint32_t attempt, const FailurePolicy& policy) {
  auto why = std::make_unique<queue::Failure>();
  why->error = std::move(error);
  why->handler = policy.handler;
  why->host = policy.host;
  why->attempts = attempt;
  return why;
}

Disposition give_up(std::string reason, std::uint32_t attempt, const FailurePolicy& policy) {
  auto why = failure(std::move(reason), attempt, policy);
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
  const Duration wait = bounded(policy.retry.longest());
  why->wait = wait;
  return {CompletionAction::retry, wait, std::move(why), Ending::retried};
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
  const queue::core::OutcomeRule& rule = queue::core::rule_of(outcome.status);
  if (policy.retry.used_up(attempt)) {
    Disposition last = give_up(reason_of(outcome), attempt, policy);
    last.marks = last.action == CompletionAction::retry ? rule.marks : queue::Marks{0};
    return last;
  }
  // A fault names no delay that could be trusted.
  const bool named = rule.takes_delay && outcome.delay.has_value();
  const Duration delay = named ? *outcome.delay : policy.retry.delay(attempt, random);
  auto why = failure(reason_of(outcome), attempt, policy);
  why->wait = bounded(delay);
  return {CompletionAction::retry, bounded(delay), std::move(why), Ending::retried, rule.marks};
}

constexpr Duration kMaxMargin = std::chrono::seconds(1);
constexpr Duration kMaxCall = std::chrono::seconds(10);

// Never 0, which stands for none.
std::uint64_t fingerprint_of(const queue::Message& message) {
  const std::hash<std::string_view> hash;
  std::uint64_t mixed = hash(message.body);
  const auto mix = [&](std::string_view text) { mixed = mixed * 0x9e3779b97f4a7c15U + hash(text) + 1; };
  mix(message.content_type);
  mix(message.group);
  mix(message.checkpoint);  // what another host has committed meanwhile must not be committed again
  for (const auto& [name, value] : message.attributes) {
    if (name == observe::kTraceParent) {
      continue;  // each delivery has one of its own
    }
    mix(name);
    mix(value);
  }
  return mixed | 1U;
}

// Only what ended for good may stand for another run. What was to be tried again is tried again.
bool is_final(const Disposition& disposition) {
  return disposition.ending == Ending::done || disposition.ending == Ending::discarded ||
         disposition.ending == Ending::rejected;
}

std::uint64_t fingerprint_of(const Task& task) {
  return task.fingerprint != 0 ? task.fingerprint : fingerprint_of(task.message);
}

// Nobody has changed the message since it became this task's, or sent another one under its id.
bool is_unchanged(const Task& task, const queue::Message& message) {
  return task.message.sent_at == message.sent_at && message.attempt >= task.message.attempt &&
         fingerprint_of(task) == fingerprint_of(message);
}

}  // namespace

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
  switch (config_.jitter) {
    case config::Jitter::none:
      return full;
    case config::Jitter::full:
      return part_of(full, random);
    case config::Jitter::equal:
      return jittered(full, random);
  }
  return full;
}

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
  const queue::core::OutcomeRule& rule = queue::core::rule_of(outcome.status);
  if (rule.decision == queue::core::Decision::gives_up) {
    return give_up(reason_of(outcome), attempt, policy);
  }
  if (rule.decision == queue::core::Decision::outcome) {
    const bool keeps_why = rule.action == CompletionAction::retry;
    return {.action = rule.action,
            .delay = rule.takes_delay ? bounded(outcome.delay.value_or(rule.delay)) : rule.delay,
            .failure = keeps_why ? failure(outcome.reason, attempt, policy) : nullptr,
            .ending = rule.ending,
            .marks = rule.marks,
            .effects = outcome.effects};
  }
  return try_again(outcome, attempt, policy, random);
}

Disposition dispose_unseen(std::string why, std::uint32_t attempt, const FailurePolicy& policy) {
  Disposition disposition = give_up(std::move(why), attempt - std::min(attempt, 1U), not_discarding(policy));
  if (disposition.action == CompletionAction::retry) {
    // It stays where it is, with its attempt and with the failure that is known.
    return {CompletionAction::release, disposition.delay, {}, Ending::snoozed, kUnchanged};
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
    disposition.failure.reset();
    disposition.marks = kUnchanged;
  }
  return disposition;
}

Disposition dispose_crash(std::string why, std::uint32_t attempt, const FailurePolicy& policy, Random& random) {
  return try_again({OutcomeStatus::crashed, {}, std::move(why)}, attempt, policy, random);
}

Disposition put_back() { return {CompletionAction::release, Duration::zero(), {}, Ending::released, kUnchanged}; }

queue::Completion completion_of(queue::Receipt receipt, Disposition&& disposition, WallTime now) {
  queue::Failure why;
  if (disposition.failure != nullptr) {
    disposition.failure->failed_at = now;
    why = std::move(*disposition.failure);
  }
  return {.receipt = std::move(receipt),
          .action = disposition.action,
          .delay = disposition.delay,
          .failure = std::move(why),
          .marks = disposition.marks,
          .effects = std::move(disposition.effects),
          .hold_group = disposition.hold_group};
}

bool Disposition::commits_statements() const {
  return effects && std::any_of(effects->writes.begin(), effects->writes.end(), [](const queue::EffectWrite& write) {
           return std::holds_alternative<queue::SqlWrite>(write.write);
         });
}

SteadyTime LeaseTerms::usable_until(const Lease& lease) const {
  return lease.ends_at - std::min(visibility_ / 10, kMaxMargin);
}

Duration LeaseTerms::call_timeout() const { return std::min(visibility_ / 4, kMaxCall); }

Task& InFlightTable::admit(queue::Delivery&& delivery) {
  Task* task = nullptr;
  if (free_.empty()) {
    task = &storage_.emplace_back();
  } else {
    task = free_.back();
    free_.pop_back();
    // Made anew in its place: moving an empty one there costs as much as the message itself.
    std::destroy_at(task);
    std::construct_at(task);
  }
  task->slot = crash_ledger_.hold(delivery);
  task->suspect = delivery.suspect;
  task->part = delivery.receipt.part;
  task->message = std::move(delivery.message);
  task->lease = terms_.granted(std::move(delivery.receipt), delivery.leased_until);
  task->place = active_.size();
  active_.push_back(task);
  return *task;
}

Task* InFlightTable::resume(queue::Delivery& delivery, StepEffects& effects) {
  for (Task* task : active_) {
    // Two queues of one job may have messages of one id.
    const bool same = task->part == delivery.receipt.part && task->message.id == delivery.message.id &&
                      is_unchanged(*task, delivery.message);
    // Whoever waits for the key of what was lost may have been let in meanwhile.
    const bool unanswered = task->stage() == TaskStage::settling || task->receipt_state() == ReceiptState::extending;
    const bool runs_on = task->runs_on() && !unanswered && !has_mark(*task);
    const bool in_call = task->open() && unanswered;
    if (!same || !(task->open() || runs_on) || (in_call && !SLUICE_GUARD(own_claim_waits))) {
      continue;
    }
    if (!task->open()) {
      // It was counted as lost when that was told.
      task->take_up();
      adopt(*task, std::move(delivery), effects);
    } else if (in_call) {
      wait_for_answer(*task, std::move(delivery));
    } else {
      task->go_on();
      account_.end(Ending::lost);
      adopt(*task, std::move(delivery), effects);
    }
    return task;
  }
  return nullptr;
}

void InFlightTable::end(Task& task, Ending ending) {
  task.end(ending == Ending::lost);
  if (ending != Ending::lost && !task.over()) {
    crash_ledger_.given_back(task.slot);
  }
  if (has_mark(task) && ending != Ending::done) {
    release_mark({{{}, task.key->key, task.message.id, {}, task.key->fence}, task.part});
  }
  if (closed_) {
    return;
  }
  account_.end(ending);
  if (task.newer != nullptr) {
    // Nobody goes on with it.
    account_.end(Ending::lost);
    task.newer.reset();
  }
}

void InFlightTable::tidy(Task& task) {
  if (!task.over()) {
    return;
  }
  SLUICE_ASSERT(active_[task.place] == &task);
  active_[task.place] = active_.back();
  active_[task.place]->place = task.place;
  active_.pop_back();
  // Not before its worker has given it back: until then what runs is held, whoever has the message.
  crash_ledger_.drop(task.slot);
  // Bodies can be large; an unused place keeps none.
  task.message = {};
  free_.push_back(&task);
}

void FinishedWork::keep(Task& task) { task.finished_here = is_final(task.disposition); }

void FinishedWork::shrink(Task& task) {
  // A handler that is given up may read its message still, as may whoever asks for its key.
  const bool is_read = task.with_worker() || task.asked;
  if (!is_read && task.message.body.size() > kKeptBody) {
    task.fingerprint = fingerprint_of(task.message);
    task.message.body = {};
  }
}

void FinishedWork::remember(const Task& task, Disposition&& disposition) {
  if (!is_final(disposition)) {
    return;
  }
  const std::uint64_t fingerprint = fingerprint_of(task);
  if (remembered_.size() >= kMaxRemembered) {
    remembered_.erase(order_.front());
    order_.pop_front();
  }
  const auto [entry, fresh] = remembered_.insert_or_assign(
      name_of(task), Remembered{task.message.sent_at, attempts_made(task), fingerprint, std::move(disposition)});
  if (fresh) {
    order_.push_back(entry->first);
  }
}

std::optional<FinishedWork::Remembered> FinishedWork::recognise(const Task& task) {
  if (remembered_.empty()) {
    return std::nullopt;
  }
  const queue::Message& message = task.message;
  const auto found = remembered_.find(name_of(task));
  if (found == remembered_.end()) {
    return std::nullopt;
  }
  const Remembered& one = found->second;
  const bool same =
      one.sent_at == message.sent_at && message.attempt >= one.attempt && one.fingerprint == fingerprint_of(message);
  auto known = same ? std::optional(std::move(found->second)) : std::nullopt;
  order_.erase(std::find(order_.begin(), order_.end(), found->first));
  remembered_.erase(found);
  return known;
}

}  // namespace sluice::work
