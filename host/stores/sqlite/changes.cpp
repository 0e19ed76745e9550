#include "host/stores/sqlite/changes.hpp"

#include <algorithm>
#include <utility>

#include "host/queue/message.hpp"
#include "host/stores/core/transitions.hpp"

namespace sluice::queue::sqlite {

namespace {

ChangeResult conflict(const MessageRecord& standing, Error error) {
  return {ChangeStatus::conflict, standing.version, std::move(error)};
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

ChangeResult Changes::apply_to(const MessageRecord& before, const std::string& queue, const Change& change,
                               WallTime now) {
  switch (const core::Verdict verdict = core::judge(change.action, before.state(), now)) {
    case core::Verdict::apply:
      break;
    case core::Verdict::unchanged:
      return {ChangeStatus::applied, before.version, {}};
    case core::Verdict::not_in_dlq:
    case core::Verdict::in_flight:
      return conflict(before, core::refusal(verdict, queue, before.id));
  }
  const core::StateChange made = core::change(change, now, place_for(change.action, before, now));
  if (made.removes) {
    records_.deliveries().remove(before);
    return {};
  }
  MessageRecord after = before;
  after.apply(made);
  if (made.created_at) {
    records_.renew(before, after, now);
  } else {
    records_.deliveries().change(before, after, now);
  }
  return {ChangeStatus::applied, before.version + 1, {}};
}

std::optional<WallTime> Changes::place_for(ChangeAction action, const MessageRecord& before, WallTime now) {
  if (action == ChangeAction::move_to_front) {
    return next_front(before.half, now);
  }
  fronts_.clear();
  return action == ChangeAction::redrive ? records_.groups().held_place(before.seq) : std::nullopt;
}

WallTime Changes::next_front(std::int64_t half, WallTime now) {
  auto known = fronts_.find(half);
  if (known == fronts_.end()) {
    GroupOrder& groups = records_.groups();
    const bool plain = groups.kept(half) == Kept::none && !groups.prioritised(half);
    ReadyIndex& ready_index = records_.ready_index();
    const WallTime first = (plain ? ready_index.front(half) : ready_index.front_of_all(half)).value_or(now);
    known = fronts_.emplace(half, std::min(first, now)).first;
  }
  if (known->second > WallTime::min()) {
    known->second -= Duration(1);
  }
  return known->second;
}

}  // namespace sluice::queue::sqlite
