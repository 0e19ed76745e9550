#include "host/stores/core/transitions.hpp"

#include <limits>
#include <utility>

#include "host/queue/message.hpp"

namespace sluice::queue::core {
namespace {

/// Nobody holds it any more.
StateChange given_up(std::optional<WallTime> hidden_until) {
  StateChange change;
  change.hidden_until = hidden_until;
  change.received_at.emplace();
  return change;
}

/// As newly sent to a half. Whatever its record said of it ends here.
StateChange newly_sent(Half half, WallTime sent_at) {
  StateChange change = given_up(std::nullopt);
  change.half = half;
  change.sent_at = sent_at;
  change.receives = 0;
  change.marks = 0;
  return change;
}

std::optional<WallTime> delayed_until(WallTime now, Duration delay) {
  return delay > Duration::zero() ? std::optional(later(now, delay)) : std::nullopt;
}

}  // namespace

void apply(const StateChange& change, WallTime now, StoredMessage& record) {
  record.half = change.half.value_or(record.half);
  record.message.sent_at = change.sent_at.value_or(record.message.sent_at);
  record.invisible_until = change.hidden_until.value_or(record.invisible_until);
  record.received_at = change.received_at.value_or(record.received_at);
  record.message.attempt = change.receives.value_or(record.message.attempt);
  record.marks = change.marks.value_or(record.marks);
  record.created_at = change.created_at.value_or(record.created_at);
  if (change.failure) {
    record.failure = *change.failure;
  }
  record.updated_at = now;
  ++record.version;
}

std::uint32_t receives_when_claimed(const MessageState& before, bool counts) {
  const bool takes_a_place = before.received && (before.marks & kSuspect) == 0 && before.receives > 0 && !counts;
  const bool at_the_end = before.receives == std::numeric_limits<std::uint32_t>::max();
  return before.receives + (takes_a_place || at_the_end ? 0 : 1);
}

StateChange claim(const MessageState& before, const ClaimTerms& terms) {
  StateChange change;
  change.hidden_until.emplace(terms.until);
  change.received_at.emplace(terms.now);
  change.receives = receives_when_claimed(before, terms.counts);
  if (before.is_suspect()) {
    change.marks = before.marks | kSuspect;
  }
  return change;
}

StateChange extension(WallTime until) {
  StateChange change;
  change.hidden_until.emplace(until);
  return change;
}

StateChange end(const Completion& completion, std::uint32_t attempt, WallTime now) {
  StateChange change;
  switch (completion.action) {
    case CompletionAction::remove:
      change.removes = true;
      return change;
    case CompletionAction::dead_letter:
      change = newly_sent(Half::dlq, now);
      break;
    case CompletionAction::retry:
    case CompletionAction::release:
      change = given_up(delayed_until(now, completion.delay));
      change.marks = completion.marks;
      break;
  }
  if (completion.action == CompletionAction::release) {
    if (attempt > 0) {
      change.receives = attempt - 1;
    }
  } else if (!completion.failure.empty()) {
    change.failure = completion.failure;
  }
  return change;
}

Failure with_earlier(Failure latest, const Failure& before) {
  latest.earlier = earlier_than_next(before);
  return latest;
}

Requirement requirement(ChangeAction action) {
  switch (action) {
    case ChangeAction::dead_letter:
      return {.half = Half::standard};
    case ChangeAction::redrive:
      return {.half = Half::dlq, .not_in_flight = true};
    default:
      return {};
  }
}

Verdict judge(ChangeAction action, const MessageState& before, WallTime now) {
  const Requirement required = requirement(action);
  if (required.half && before.half != *required.half) {
    return action == ChangeAction::dead_letter ? Verdict::unchanged : Verdict::not_in_dlq;
  }
  return required.not_in_flight && before.is_in_flight(now) ? Verdict::in_flight : Verdict::apply;
}

Error refusal(Verdict verdict, const std::string& queue, const std::string& id) {
  return verdict == Verdict::in_flight ? in_flight_in_dlq(queue, id) : not_in_dlq(queue, id);
}

StateChange change(const Change& change, WallTime now, std::optional<WallTime> place) {
  StateChange made;
  switch (change.action) {
    case ChangeAction::remove:
      made.removes = true;
      break;
    case ChangeAction::set_visibility:
      made.hidden_until.emplace(delayed_until(now, change.after).value_or(seen_already(now, change.after)));
      break;
    case ChangeAction::delay:
      // A message that is suspected of something stays so: it is only put off.
      made = given_up(delayed_until(now, change.after));
      made.sent_at = later(now, change.after);
      break;
    case ChangeAction::move_to_front:
      made = given_up(std::nullopt);
      made.sent_at = place.value_or(now);
      made.marks = 0;
      break;
    case ChangeAction::dead_letter:
      made = newly_sent(Half::dlq, now);
      if (!change.failure.empty()) {
        made.failure = change.failure;
      }
      break;
    case ChangeAction::redrive:
      made = newly_sent(Half::standard, place.value_or(now));
      made.failure.emplace();
      break;
    case ChangeAction::reset:
      made = newly_sent(Half::standard, now);
      made.failure.emplace();
      made.created_at = now;
      break;
  }
  return made;
}

}  // namespace sluice::queue::core
