#include "host/stores/table/record_operator.hpp"

#include <algorithm>
#include <set>

#include "base/ranges.hpp"
#include "base/text/utf8.hpp"
#include "host/queue/message.hpp"
#include "host/stores/core/writes.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/statements.hpp"

namespace sluice::queue::table {

Result<dynamo::Item> RecordOperator::record(const std::string& id, Deadline deadline) const {
  if (!layout_.is_storable_id(id)) {
    return no_message(place().queue, clean_utf8(id, 100, "?"));
  }
  SLUICE_TRY(found, checked(place(), layout_.find({id}, deadline)));
  dynamo::Item& item = found->at(id).item;
  if (item.empty()) {
    return no_message(place().queue, id);
  }
  return std::move(item);
}

Result<StoredMessage> RecordOperator::get(const std::string& id, Deadline deadline) {
  SLUICE_TRY(item, record(id, deadline));
  return layout_.decode(*item);
}

// Changes.

core::StateChange RecordOperator::Task::wanted(WallTime now) const {
  core::StateChange made = core::change(*change, state, now, front);
  if (without_failure) {
    made.failure.reset();
  }
  return made;
}

std::vector<ChangeResult> RecordOperator::change(std::span<const Change> changes, Deadline deadline) {
  if (const auto sure = parts_.clock.be_sure(place(), kTimeTolerance, deadline); !sure) {
    return {changes.size(), ChangeResult{ChangeStatus::failed, 0, sure.error()}};
  }
  std::vector<ChangeResult> results(changes.size());
  std::vector<Task> tasks(changes.size());
  std::vector<Task*> open;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Task& task = tasks[i];
    task.change = &changes[i];
    task.result = &results[i];
    task.look = needs_look(changes[i]);
    if (!task.look && changes[i].version) {
      task.before = VersionMark::number_of(*changes[i].version);
    }
    if (layout_.is_storable_id(changes[i].id)) {
      open.push_back(&task);
    } else {  // DynamoDB would refuse the whole batch
      task.end(ChangeStatus::not_found, 0, no_message(place().queue, clean_utf8(changes[i].id, 100, "?")));
    }
  }
  const auto ended = [](const Task* task) { return !task->open; };
  for (int race = 0; race <= kMaxRaces && !open.empty(); ++race) {
    look(open, deadline);
    std::erase_if(open, ended);
    if (race < kMaxRaces && !open.empty()) {
      write(open, deadline);
      std::erase_if(open, ended);
    }
  }
  for (Task* task : open) {
    task->end(ChangeStatus::conflict, 0, changed_all_the_time(place().queue, task->change->id));
  }
  for (const Task& task : tasks) {
    on_end(task);
  }
  parts_.doorbell.ring_changed(place().queue, changes, results);
  return results;
}

void RecordOperator::look(const std::vector<Task*>& tasks, Deadline deadline) const {
  std::set<std::string> ids;
  for (const Task* task : tasks) {
    if (task->look) {
      ids.insert(task->change->id);
    }
  }
  if (ids.empty()) {
    return;
  }
  const auto found = layout_.find(ids, deadline);
  for (Task* task : tasks) {
    if (!std::exchange(task->look, false)) {
      continue;
    }
    if (found) {
      judge(*task, found->at(task->change->id).item);
      continue;
    }
    Error error = store_error(place(), found.error());
    task->end(ChangeStatus::failed, 0,
              task->doubt ? Error(ErrorCode::unknown_outcome, error.message()) : std::move(error));
  }
}

// Whether the record as it stands tells what came of the last try. What is unknown may still arrive.
bool RecordOperator::judge_doubt(Task& task, const dynamo::Item& record) const {
  const StatementOutcome doubt = *std::exchange(task.doubt, std::nullopt);
  const std::int64_t version = record.empty() ? 0 : layout_.version_of(record).number;
  const std::string nonce = layout_.nonce_of(record);
  const bool whatever_it_is = task.removes() && !task.change->version && task.item.empty();
  const core::WriteFate fate =
      core::fate_of({.nonce = task.removes() ? std::string_view() : task.nonce,
                     .version = whatever_it_is ? std::nullopt : std::optional(task.before.number),
                     .refused = doubt.fate == StatementFate::refused},
                    record.empty() ? std::nullopt : std::optional(core::RecordTrace{nonce, version}));
  if (fate == core::WriteFate::applied) {
    task.end(ChangeStatus::applied, version);
    return true;
  }
  if (fate == core::WriteFate::unknown) {
    task.end(ChangeStatus::failed, 0,
             Error(ErrorCode::unknown_outcome,
                   "nobody can tell yet whether message '" + task.change->id + "' was changed; look at it again"));
    return true;
  }
  return false;
}

void RecordOperator::judge(Task& task, dynamo::Item record) const {
  if (task.doubt && judge_doubt(task, record)) {
    return;
  }
  const std::string& queue = place().queue;
  if (record.empty()) {
    return task.end(ChangeStatus::not_found, 0, no_message(queue, task.change->id));
  }
  task.item = std::move(record);
  task.before = layout_.version_of(task.item);
  task.state = core::MessageState::of(layout_.decode_state(task.item));
  if (auto end = core::foregone(*task.change, task.state, queue, parts_.clock.wall_now())) {
    task.end(end->status, end->version, std::move(end->error));
  }
}

void RecordOperator::note(Task& task, const StatementOutcome& outcome, bool elsewhere) const {
  if (in_doubt(outcome)) {
    task.doubt = outcome;
  }
  switch (outcome.fate) {
    case StatementFate::done:
      // The removal of an absent record succeeds without an item. After a repeat it was our own first try that did it.
      if (!task.removes() || !outcome.item.empty() || outcome.repeated) {
        return task.end(ChangeStatus::applied, task.removes() ? 0 : task.before.next());
      }
      if (!elsewhere) {
        return task.end(ChangeStatus::not_found, 0, no_message(place().queue, task.change->id));
      }
      task.look = true;
      return;
    case StatementFate::unknown:
    case StatementFate::refused:
      task.look = true;
      return;
    case StatementFate::failed:
      break;
  }
  const bool has_reason = task.change->action == ChangeAction::dead_letter && !task.change->failure.empty();
  if (outcome.error.kind == dynamo::ErrorKind::validation && has_reason && !task.without_failure) {
    task.without_failure = true;  // a record close to 400 KB has no room for the reason; the message matters more
    return;
  }
  task.end(ChangeStatus::failed, 0, store_error(place(), outcome.error));
}

void RecordOperator::note(Task& task, const dynamo::Result<dynamo::ItemOutput>& result) const {
  StatementOutcome outcome{.fate = StatementFate::done};
  if (!result) {
    const dynamo::Error& error = result.error();
    // What is there by now is told by another look.
    const bool refused = error.kind == dynamo::ErrorKind::conditional_check_failed ||
                         error.exception_name == "TransactionInProgressException";
    outcome.fate = error.outcome_unknown ? StatementFate::unknown
                   : refused             ? StatementFate::refused
                                         : StatementFate::failed;
    outcome.error = error;
  } else if (task.removes()) {
    return task.end(ChangeStatus::applied);
  }
  note(task, outcome, true);
}

// Edits.

Result<StoredMessage> RecordOperator::edit(const std::string& id, std::int64_t version,
                                           std::span<const ContentEdit> edits, Deadline deadline) {
  SLUICE_TRY(before, record(id, deadline));
  if (layout_.version_of(*before).number != version) {
    return changed_since(place().queue, id);
  }
  SLUICE_TRY(after, edited(*before, edits, deadline));
  if (auto error = too_large(*after, layout_.names().life_bytes); error && item_bytes(*after) > item_bytes(*before)) {
    return std::move(*error);
  }
  const Change change{.id = id, .action = ChangeAction::set_visibility, .version = version};
  ChangeResult result;
  Task task{.change = &change, .result = &result, .look = false, .item = std::move(*before)};
  task.before = layout_.version_of(task.item);
  task.nonce = parts_.nonces.anonymous();
  touch(layout_.names(), *after, layout_.version_of(*after), {task.nonce, parts_.clock.wall_now()});
  for (int race = 0; race < kMaxRaces && task.open; ++race) {
    put_edited(task, *after, deadline);
    look({&task}, deadline);
  }
  if (task.open) {
    task.end(ChangeStatus::conflict, 0, changed_all_the_time(place().queue, id));
  }
  on_end(task);
  if (result.status != ChangeStatus::applied) {
    return std::move(result.error);
  }
  return layout_.decode(*after);
}

void RecordOperator::put_edited(Task& task, const dynamo::Item& after, Deadline deadline) const {
  RecordWrite write{.kind = RecordWrite::Kind::update,
                    .table = place().table,
                    .expected = {.id = dynamo::text_of(after, layout_.names().hash), .version = task.before},
                    .names = &layout_.names()};
  write.expected.sort = dynamo::text_of(after, layout_.names().range);
  for (const auto& [name, value] : after) {
    if (const auto* old = dynamo::attribute_of(task.item, name); old == nullptr || !(*old == value)) {
      write.change.set.emplace_back(name, value);
    }
  }
  for (const auto& [name, value] : task.item) {
    if (!after.contains(name)) {
      write.change.removed.push_back(name);
    }
  }
  note(task, parts_.runner.run({std::move(write)}, Repetition::until_known, deadline).front(), true);
}

std::vector<PutResult> put_results(std::vector<SendResult> fates) {
  return mapped(fates, [](SendResult& fate) {
    return fate.status == SendStatus::sent           ? PutResult{}
           : fate.status == SendStatus::duplicate_id ? PutResult{PutStatus::exists, {}}
                                                     : PutResult{PutStatus::failed, std::move(fate.error)};
  });
}

// Overviews.

void OverviewCount::add(const StoredMessage& record) {
  const MessageState state = record.state(now_);
  QueueStats& counts = overview_.counts;
  const bool ready = state == MessageState::ready;
  ++(ready ? counts.ready : state == MessageState::in_flight ? counts.in_flight : counts.delayed);
  if (ready) {
    counts.oldest_ready = std::min(counts.oldest_ready.value_or(record.message.sent_at), record.message.sent_at);
  }
  if (overview_.first_ids.size() < most_ids_) {
    overview_.first_ids.push_back(record.message.id);
  }
  const bool hidden = record.invisible_until && now_ <= *record.invisible_until;
  counts.delayed_by_sent_at += state == MessageState::delayed && !hidden ? 1 : 0;
  if (hidden && overview_.first_in_flight_ids.size() < most_ids_) {
    overview_.first_in_flight_ids.push_back(record.message.id);
  }
  if (most_errors_ > 0) {
    errors_.add(record.message.id, record.failure);
  }
}

QueueOverview OverviewCount::finish() && {
  overview_.errors = std::move(errors_).finish(most_errors_, overview_.unlisted_errors);
  return std::move(overview_);
}

}  // namespace sluice::queue::table
