#include "host/stores/sqlite/changes.hpp"

#include <algorithm>
#include <utility>

#include "host/queue/message_errors.hpp"
#include "host/queue/visibility.hpp"
#include "host/stores/sqlite/row_codec.hpp"
#include "host/stores/sqlite/times.hpp"

namespace sluice::queue::sqlite {

namespace {

ChangeResult conflict(const Standing& standing, Error error) {
  return {ChangeStatus::conflict, standing.version, std::move(error)};
}

bool in_dlq(const Standing& standing) { return (standing.half & 1) != 0; }

bool in_flight(const Standing& standing, WallTime now) {
  return standing.until && now <= *standing.until && standing.received_at;
}

/// As newly sent, visible from `sent_at` on.
Standing resent(const Standing& before, WallTime sent_at) {
  Standing after = before;
  after.sent_at = sent_at;
  after.until.reset();
  after.received_at.reset();
  after.suspect = false;
  return after;
}

/// As newly sent to a half, nobody having received it.
Standing fresh(const Standing& before, std::int64_t half, WallTime now) {
  Standing after = resent(before, now);
  after.half = half;
  after.receives = 0;
  after.failure.reset();
  return after;
}

}  // namespace

ChangeResult Changes::apply(const std::string& queue, const Change& change, WallTime now) {
  const auto number = records_.queue(queue);
  const auto standing = number ? records_.find(*number, change.id) : std::nullopt;
  if (!standing) {
    return {ChangeStatus::not_found, 0, no_message(queue, change.id)};
  }
  if (change.version && *change.version != standing->version) {
    return conflict(*standing, changed_since(queue, change.id));
  }
  return apply_to(*standing, queue, change, now);
}

ChangeResult Changes::apply_to(const Standing& before, const std::string& queue, const Change& change, WallTime now) {
  Deliveries& deliveries = records_.deliveries();
  Standing after = before;
  if (change.action != ChangeAction::move_to_front) {
    fronts_.clear();
  }
  switch (change.action) {
    case ChangeAction::remove:
      deliveries.remove(before);
      return {};
    case ChangeAction::set_visibility:
      after.until = change.after > Duration::zero() ? later(now, change.after) : seen_already(now, change.after);
      break;
    case ChangeAction::delay:
      after = resent(before, later(now, change.after));
      if (change.after > Duration::zero()) {
        after.until = after.sent_at;
      }
      break;
    case ChangeAction::move_to_front:
      after = resent(before, next_front(before.half, now));
      break;
    case ChangeAction::dead_letter:
      if (in_dlq(before)) {
        return {ChangeStatus::applied, before.version, {}};
      }
      after = fresh(before, before.half | 1, now);
      after.failure = change.failure.empty() ? before.failure : encode_failure(change.failure);
      break;
    case ChangeAction::redrive:
      if (!in_dlq(before)) {
        return conflict(before, not_in_dlq(queue, before.id));
      }
      if (in_flight(before, now)) {
        return conflict(before, in_flight_in_dlq(queue, before.id));
      }
      after = fresh(before, before.half & ~std::int64_t{1}, now);
      // One that its group waits for takes its old place, so that it is the next of them.
      after.sent_at = records_.lanes().held_place(before.seq).value_or(after.sent_at);
      break;
    case ChangeAction::reset:
      records_.renew(before, fresh(before, before.half & ~std::int64_t{1}, now), now);
      return {ChangeStatus::applied, before.version + 1, {}};
  }
  deliveries.change(before, after, now);
  return {ChangeStatus::applied, before.version + 1, {}};
}

WallTime Changes::next_front(std::int64_t half, WallTime now) {
  auto known = fronts_.find(half);
  if (known == fronts_.end()) {
    Lanes& lanes = records_.lanes();
    const bool plain = lanes.kept(half) == Kept::none && !lanes.prioritised(half);
    Places& places = records_.places();
    const WallTime first = (plain ? places.front(half) : places.front_of_all(half)).value_or(now);
    known = fronts_.emplace(half, std::min(first, now)).first;
  }
  if (known->second > WallTime::min()) {
    known->second -= Duration(1);
  }
  return known->second;
}

}  // namespace sluice::queue::sqlite
