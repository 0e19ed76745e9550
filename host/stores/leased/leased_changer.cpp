#include "host/stores/leased/leased_changer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text/utf8.hpp"
#include "host/queue/message.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/leased/leased_actions.hpp"
#include "host/stores/leased/leased_change_task.hpp"
#include "host/stores/leased/leased_inspector.hpp"
#include "host/stores/leased/leased_writes.hpp"

namespace sluice::queue::leased {
namespace {

using table::RecordWrite;
using table::StatementFate;
using table::StatementOutcome;

ChangeResult conflict(Error why) { return {ChangeStatus::conflict, 0, std::move(why)}; }

RecordWrite write_about(RecordWrite::Kind kind, const table::QueueTable& table, const Place& place,
                        table::VersionMark version) {
  RecordWrite write{.kind = kind, .table = table.table, .expected = {place.partition, std::move(version)}};
  write.expected.sort = place.sort;
  write.names = &kRecordNames;
  return write;
}

}  // namespace

std::vector<ChangeResult> LeasedChanger::change(std::span<const Change> changes, Deadline deadline) const {
  std::vector<ChangeResult> results(changes.size());
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (!is_storable_id(queue_.place.queue, changes[i].id)) {
      results[i] = {ChangeStatus::not_found, 0, no_message(queue_.place.queue, clean_utf8(changes[i].id, 100, "?"))};
      continue;
    }
    tasks.push_back({.change = &changes[i], .result = &results[i]});
  }
  const auto ended = [](const Task& task) { return !task.open; };
  for (int race = 0; race <= kMaxRaces && !tasks.empty(); ++race) {
    look(tasks, deadline);
    std::erase_if(tasks, ended);
    if (race < kMaxRaces) {
      write(tasks, deadline);
      std::erase_if(tasks, ended);
    }
  }
  for (Task& task : tasks) {
    task.end(conflict(changed_all_the_time(queue_.place.queue, task.change->id)));
  }
  return results;
}

void LeasedChanger::look(std::vector<Task>& tasks, Deadline deadline) const {
  std::set<std::string> ids;
  for (const Task& task : tasks) {
    ids.insert(task.change->id);
  }
  auto found =
      ids.empty() ? dynamo::Result<std::map<std::string, LeasedLookup::Found>>({}) : lookup_.find(ids, deadline);
  for (Task& task : tasks) {
    if (found) {
      judge(task, LeasedLookup::Found(found->at(task.change->id)));
      continue;
    }
    Error error = table::store_error(queue_.place, found.error());
    task.end({ChangeStatus::failed, 0,
              task.in_doubt ? Error(ErrorCode::unknown_outcome, error.message()) : std::move(error)});
  }
  look_at_holds(tasks, deadline);
}

// Only of those that are to be redriven: they go back to where they lay before.
void LeasedChanger::look_at_holds(std::vector<Task>& tasks, Deadline deadline) const {
  std::map<Place, Task*> held;
  std::set<Place> places;
  for (Task& task : tasks) {
    const auto free =
        task.open && task.change->action == ChangeAction::redrive ? free_group(queue_.place, task.item) : std::nullopt;
    if (free) {
      const Place place = Place::of(free->item_or_key);
      held.emplace(place, &task);
      places.insert(place);
    }
  }
  if (places.empty()) {
    return;
  }
  const auto holds = lookup_.read(places, deadline);
  for (const auto& [place, task] : held) {
    if (!holds) {
      task->end({ChangeStatus::failed, 0, table::store_error(queue_.place, holds.error())});
      continue;
    }
    const auto hold = holds->find(place);
    const auto* sort = hold == holds->end() ? nullptr : dynamo::find<std::string>(hold->second, attribute::kTargetSort);
    const auto partition = parse_partition(Place::of(task->item).partition);
    if (sort != nullptr && partition && is_sort_key(*sort)) {
      task->old_place = Place{partition_of(queue_.place.queue, Half::standard, partition->shard), *sort};
    }
  }
}

bool LeasedChanger::judge_doubt(Task& task, const LeasedLookup::Found& standing) const {
  if (!std::exchange(task.in_doubt, false)) {
    return false;
  }
  const bool ours = standing.there() && !task.nonce.empty() && Candidate::of(standing.item).nonce == task.nonce;
  if (task.removes() ? !standing.there() : ours) {
    task.end({ChangeStatus::applied, task.removes() ? 0 : version_of(standing.item).number, {}});
    return true;
  }
  return false;
}

void LeasedChanger::judge(Task& task, LeasedLookup::Found&& standing) const {
  if (judge_doubt(task, standing)) {
    return;
  }
  const Change& change = *task.change;
  const std::string& queue = queue_.place.queue;
  if (!standing.there()) {
    return task.end({ChangeStatus::not_found, 0, no_message(queue, change.id)});
  }
  task.item = std::move(standing.item);
  const auto version = version_of(task.item);
  if (change.version && version.number != *change.version) {
    return task.end(conflict(changed_since(queue, change.id)));
  }
  const auto state = core::MessageState::of(decode_standing(task.item, half_of(task.item)));
  switch (const auto verdict = core::judge(change.action, state, parts_.store.clock.wall_now())) {
    case core::Verdict::apply:
      return;
    case core::Verdict::unchanged:
      return task.end({ChangeStatus::applied, version.number, {}});
    case core::Verdict::not_in_dlq:
    case core::Verdict::in_flight:
      return task.end(conflict(core::refusal(verdict, queue, change.id)));
  }
}

void LeasedChanger::write(std::vector<Task>& tasks, Deadline deadline) const {
  std::vector<Task*> staying;
  std::vector<Task*> fenced;
  std::vector<Task*> moving;
  for (Task& task : tasks) {
    task.nonce = parts_.store.nonces.anonymous();
    task.fence = fence_of_ ? fence_of_(task.change->id) : std::nullopt;
    (task.fence ? fenced : task.in_place() ? staying : moving).push_back(&task);
  }
  const WallTime now = parts_.store.clock.wall_now();
  write_fenced(fenced, now, deadline);
  write_in_place(staying, now, deadline);
  move(moving, now, deadline);
}

table::RecordWrite LeasedChanger::in_place(const Task& task, WallTime now) const {
  const auto version = version_of(task.item);
  RecordWrite write = write_about(task.removes() ? RecordWrite::Kind::remove : RecordWrite::Kind::update, queue_.place,
                                  Place::of(task.item), version);
  write.returning = task.removes();
  if (!task.removes()) {
    write.change = attributes_of(core::change(*task.change, now), false);
    write.change.set.emplace_back(attribute::kVersion, dynamo::AttributeValue::number(next_version(version)));
    write.change.set.emplace_back(attribute::kNonce, task.nonce);
    write.change.set.emplace_back(attribute::kUpdated, stored_time(now));
  }
  return write;
}

void LeasedChanger::write_in_place(std::vector<Task*>& tasks, WallTime now, Deadline deadline) const {
  if (tasks.empty()) {
    return;
  }
  std::vector<RecordWrite> writes;
  std::transform(tasks.begin(), tasks.end(), std::back_inserter(writes),
                 [&](const Task* task) { return in_place(*task, now); });
  const auto outcomes = parts_.store.runner.run(std::move(writes), table::Repetition::until_known, deadline);
  std::vector<Task*> removed;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    note(*tasks[i], outcomes[i]);
    if (!tasks[i]->open && tasks[i]->removes() && tasks[i]->result->status == ChangeStatus::applied) {
      removed.push_back(tasks[i]);
    }
  }
  clean_up(removed, deadline);
}

void LeasedChanger::note(Task& task, const StatementOutcome& outcome) const {
  switch (outcome.fate) {
    case StatementFate::done:
      // The removal of an absent record succeeds without an item. After a repeat it was our own first try that did it.
      if (!task.removes() || !outcome.item.empty() || outcome.repeated) {
        return task.end({ChangeStatus::applied, task.removes() ? 0 : next_version(version_of(task.item)), {}});
      }
      return;
    case StatementFate::unknown:
    case StatementFate::refused:
      task.in_doubt = outcome.fate == StatementFate::unknown || outcome.repeated;
      return;
    case StatementFate::failed:
      break;
  }
  task.end({ChangeStatus::failed, 0, table::store_error(queue_.place, outcome.error)});
}

// What leads to messages that are gone. A failure leaves no more than an item that nobody minds: a stale alias gives
// way to the next message of that id.
void LeasedChanger::clean_up(const std::vector<Task*>& removed, Deadline deadline) const {
  std::vector<RecordWrite> writes;
  for (const Task* task : removed) {
    const Candidate record = Candidate::of(task->item);
    if (!record.own_id.empty()) {
      writes.push_back(remove_alias(queue_.place.table, queue_.place.queue, record.own_id, record.place));
    }
    if (const auto partition = parse_partition(record.place.partition); record.hold && partition) {
      writes.push_back(remove_hold(queue_.place.table, queue_.place.queue, partition->shard, record.group, record.id));
    }
  }
  if (!writes.empty()) {
    parts_.store.runner.run(std::move(writes), table::Repetition::until_known, deadline);
  }
}

Place LeasedChanger::goal(const Task& task, std::uint32_t shards, WallTime now, std::int64_t number) const {
  const Candidate record = Candidate::of(task.item);
  const auto partition = parse_partition(record.place.partition).value_or(Partition{});
  // A shard beyond the number is to run empty.
  const std::uint32_t shard =
      partition.shard < shards ? partition.shard : shard_of(record.group, shards, parts_.random);
  const auto in = [&](Half half) { return partition_of(queue_.place.queue, half, shard); };
  const auto key_at = [&](WallTime due) { return sort_key_of(record.priority, due, parts_.random); };
  switch (task.change->action) {
    case ChangeAction::delay:
      return {in(partition.half), key_at(later(now, task.change->after))};
    case ChangeAction::move_to_front:
      return {in(partition.half), front_sort_key(now + std::chrono::milliseconds(number), parts_.random)};
    case ChangeAction::dead_letter:
      return {in(Half::dlq), key_at(now)};
    case ChangeAction::redrive:
      return task.old_place.value_or(Place{in(Half::standard), key_at(now)});
    default:
      return {in(Half::standard), key_at(now)};
  }
}

dynamo::Item LeasedChanger::moved(const Task& task, const Place& to, WallTime now) const {
  const ChangeAction action = task.change->action;
  WallTime sent_at = action == ChangeAction::delay ? due_of(to.sort) : whole_milliseconds(now);
  if (action == ChangeAction::move_to_front) {
    sent_at = std::min(sent_at, decode_standing(task.item, Half::standard).message.sent_at);
  }
  dynamo::Item item = moved_item(task.item, to, sent_at);
  core::StateChange change = core::change(*task.change, now, due_of(to.sort));
  if (task.without_failure) {
    change.failure.reset();
  }
  change_item(item, change);
  if (change.half) {
    item.erase(std::string(attribute::kHold));
  }
  if (change.created_at) {
    item.erase(std::string(attribute::kCreatedAt));
  }
  touch(item, task.nonce, now);
  return item;
}

dynamo::TransactWriteRequest move_request(const table::QueueTable& table, const dynamo::Item& read,
                                          const dynamo::Item& moved, Random& random) {
  dynamo::TransactWriteRequest request{.actions = {}, .token = transaction_token(table, random)};
  request.actions.push_back(remove_record(table, read));
  request.actions.push_back(table::put_message(table.table, moved, kLoneNames));
  request.actions.push_back(put_alias_anyway(table, Candidate::of(moved).id, Place::of(moved)));
  const bool still_held = Candidate::of(moved).hold;
  if (auto freed = still_held ? std::nullopt : free_group(table, read)) {
    request.actions.push_back(std::move(*freed));
  }
  return request;
}

void LeasedChanger::move(std::vector<Task*>& tasks, WallTime now, Deadline deadline) const {
  if (tasks.empty()) {
    return;
  }
  const auto shards = queue_.shards.get(deadline);
  if (!shards) {
    for (Task* task : tasks) {
      task->end({ChangeStatus::failed, 0, shards.error()});
    }
    return;
  }
  std::vector<dynamo::TransactWriteRequest> requests;
  for (const Task* task : tasks) {
    const auto number = static_cast<std::int64_t>(requests.size());
    const Place to = goal(*task, shards->count, now, number);
    requests.push_back(move_request(queue_.place, task->item, moved(*task, to, now), parts_.random));
  }
  const auto results = parts_.store.client.transact_each(requests, deadline);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    note_move(*tasks[i], results[i]);
  }
}

void LeasedChanger::note_move(Task& task, const dynamo::TransactResult& result) const {
  if (!result.error) {
    return task.end({ChangeStatus::applied, next_version(version_of(task.item)), {}});
  }
  const dynamo::Error& error = *result.error;
  if (error.outcome_unknown) {
    task.in_doubt = true;
    return;
  }
  if (Task::may_go_better(error)) {
    return;
  }
  if (error.kind == dynamo::ErrorKind::validation && !task.change->failure.empty() && !task.without_failure) {
    task.without_failure = true;  // a record close to 400 KB has no room for the reason; the message matters more
    return;
  }
  task.end({ChangeStatus::failed, 0, table::store_error(queue_.place, error)});
}

}  // namespace sluice::queue::leased
