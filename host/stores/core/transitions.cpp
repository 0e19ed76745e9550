#include "host/stores/core/transitions.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "host/queue/message.hpp"

namespace sluice::queue::core {
namespace {

// What lies farther ahead was not sent by the clock.
constexpr Duration kMostSetBack = std::chrono::hours(1);

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

/// What a record keeps of a failure: with those before it, as many as a message remembers.
Failure with_earlier(Failure latest, const Failure& before) {
  latest.earlier = earlier_than_next(before);
  return latest;
}

}  // namespace

void apply(const StateChange& change, MessageState& state) {
  state.half = change.half.value_or(state.half);
  state.sent_at = change.sent_at.value_or(state.sent_at);
  state.hidden_until = change.hidden_until.value_or(state.hidden_until);
  state.received_at = change.received_at.value_or(state.received_at);
  state.receives = change.receives.value_or(state.receives);
  state.marks = change.marks.value_or(state.marks);
  state.priority = change.priority.value_or(state.priority);
  if (change.group) {
    state.group = *change.group;
  }
  if (change.failure) {
    state.failure = *change.failure;
  }
  if (change.checkpoint) {
    state.checkpoint = *change.checkpoint;
  }
  state.version = next_version(state.version);
}

MessageState sent(const NewMessage& message, WallTime now) {
  return {.sent_at = later(now, message.delay),
          .hidden_until = delayed_until(now, message.delay),
          .priority = message.priority,
          .group = message.group};
}

WallTime place_behind(WallTime last, WallTime now) { return last - now > kMostSetBack ? now : std::max(last, now); }

WallTime place_before(std::optional<WallTime> first, WallTime now) {
  const WallTime known = std::min(first.value_or(now), now);
  return known > WallTime::min() ? known - Duration(1) : known;
}

std::uint32_t receives_when_claimed(const MessageState& before, bool counts) {
  const bool takes_a_place = before.received_at && (before.marks & kSuspect) == 0 && before.receives > 0 && !counts;
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

StateChange end(const Completion& completion, const MessageState& held, WallTime now) {
  StateChange change;
  switch (completion.action) {
    case CompletionAction::remove:
      change.removes = true;
      return change;
    case CompletionAction::keep:
      change.checkpoint = completion.checkpoint;
      return change;
    case CompletionAction::dead_letter:
      change = newly_sent(Half::dlq, now);
      change.holds_group = completion.hold_group && held.half == Half::standard;
      break;
    case CompletionAction::retry:
    case CompletionAction::release:
      change = given_up(delayed_until(now, completion.delay));
      change.marks = completion.marks;
      break;
  }
  if (completion.action == CompletionAction::release) {
    if (held.receives > 0) {
      change.receives = held.receives - 1;
    }
  } else if (!completion.failure.empty()) {
    change.failure = with_earlier(completion.failure, held.failure);
  }
  return change;
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

std::optional<ChangeResult> foregone(const Change& change, const MessageState& before, const std::string& queue,
                                     WallTime now) {
  const auto conflict = [&before](Error why) {
    return ChangeResult{ChangeStatus::conflict, before.version, std::move(why)};
  };
  if (change.version && *change.version != before.version) {
    return conflict(changed_since(queue, change.id));
  }
  const Requirement required = requirement(change.action);
  if (required.half && before.half != *required.half) {
    return change.action == ChangeAction::dead_letter ? ChangeResult{ChangeStatus::applied, before.version, {}}
                                                      : conflict(not_in_dlq(queue, change.id));
  }
  if (required.not_in_flight && before.is_in_flight(now)) {
    return conflict(in_flight_in_dlq(queue, change.id));
  }
  return std::nullopt;
}

StateChange change(const Change& change, const MessageState& before, WallTime now, std::optional<WallTime> front) {
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
      made.sent_at = front.value_or(now);
      made.marks = 0;
      break;
    case ChangeAction::dead_letter:
      made = newly_sent(Half::dlq, now);
      if (!change.failure.empty()) {
        made.failure = with_earlier(change.failure, before.failure);
      }
      break;
    case ChangeAction::redrive:
      made = newly_sent(Half::standard, before.held_place.value_or(now));
      made.failure.emplace();
      break;
    case ChangeAction::reset:
      made = newly_sent(Half::standard, now);
      made.failure.emplace();
      made.checkpoint.emplace();
      made.created_at = now;
      break;
  }
  return made;
}

StateChange edit(const Message& content) {
  StateChange change;
  change.priority = content.priority;
  change.group = content.group;
  return change;
}

bool lets_group_go(const MessageState& before, const MessageState* after) {
  return before.half == Half::dlq && (after == nullptr || after->half != before.half || after->group != before.group);
}

}  // namespace sluice::queue::core
