#include "host/stores/dynamomq/changer.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text/utf8.hpp"
#include "base/timestamp.hpp"
#include "host/queue/message.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/statement_runner.hpp"

namespace sluice::queue::dynamomq {
namespace {

constexpr Duration kInstant = std::chrono::nanoseconds(1);

ChangeResult conflict(Error why) { return {ChangeStatus::conflict, 0, std::move(why)}; }

ChangeResult not_found(const table::QueueTable& place, const std::string& id) {
  return {ChangeStatus::not_found, 0, no_message(place.queue, id)};
}

// Those that need to know the record: `reset` takes away only what is there, the front depends on the half.
bool needs_record(const Change& change) {
  switch (change.action) {
    case ChangeAction::move_to_front:
    case ChangeAction::reset:
      return true;
    case ChangeAction::remove:
      return change.version && *change.version == 0;
    default:
      return change.version.value_or(0) == 0;  // 0 does not say how the record spells it
  }
}

}  // namespace

/// One change on its way. It has come to its end when `open` is false.
struct Changer::Task {
  const Change* change = nullptr;
  ChangeResult* result = nullptr;
  bool open = true;
  bool look = false;                               // the record is to be read before anything is written
  std::optional<table::StatementOutcome> doubt{};  // the last try may have taken effect all the same
  bool without_failure = false;                    // there is no room for the reason
  std::optional<StoredMessage> seen{};             // the record as it was read, without its content
  bool has_failure = false;
  table::VersionMark before{};
  std::string nonce{};  // of the last try

  std::optional<WallTime> front{};  // where the last try put it

  // The record after it was moved.
  Candidate at_the_front() const {
    Candidate record;
    record.id = change->id;
    record.sort_key = format_timestamp(*front);
    record.sent_at = *front;
    record.version = table::VersionMark::number_of(result->version);
    record.receive_count = seen->message.attempt;
    record.nonce = nonce;
    return record;
  }
  WriteTrace trace() const {
    const bool any = removes() && !change->version;
    return {removes() ? WriteTrace::Kind::remove : WriteTrace::Kind::update, change->id, nonce,
            any ? std::nullopt : std::optional(before.number)};
  }
  bool removes() const { return change->action == ChangeAction::remove; }
  // Without the record as it was read, the write itself has to see to what was not looked at.
  table::Expected expected(WallTime now) const {
    table::Expected expected{change->id, before};
    if (!seen) {
      const core::Requirement required = core::requirement(change->action);
      expected.half = required.half;
      if (required.not_in_flight) {
        expected.visible_at = now;
      }
    }
    return expected;
  }
  void end(ChangeResult ended) {
    *result = std::move(ended);
    open = false;
  }
};

/// Where the front of each half is. One look for all changes of a call.
class Changer::Front {
 public:
  /// The time that puts a message before all others of its half.
  Result<WallTime> next(const Inspector& inspector, Half half, WallTime now, Deadline deadline) {
    auto& front = front_[half == Half::dlq ? 1 : 0];
    if (!front) {
      SLUICE_TRY(oldest, inspector.oldest_sent_at(half, deadline));
      front = std::min(oldest->value_or(now), now);
    }
    *front -= kInstant;
    return *front;
  }

 private:
  std::array<std::optional<WallTime>, 2> front_;
};

std::vector<ChangeResult> Changer::change(std::span<const Change> changes, Deadline deadline,
                                          std::vector<Due>& due) const {
  std::vector<ChangeResult> results(changes.size());
  std::vector<Task> tasks;
  tasks.reserve(changes.size());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (!is_storable_id(changes[i].id)) {
      results[i] = not_found(place_, clean_utf8(changes[i].id, 100, "?"));  // DynamoDB would refuse the whole batch
      continue;
    }
    Task& task = tasks.emplace_back();
    task.change = &changes[i];
    task.result = &results[i];
    task.look = needs_record(changes[i]);
    if (!task.look && changes[i].version) {
      task.before = table::VersionMark::number_of(*changes[i].version);
    }
  }
  const auto ended = [&due](const Task& task) {
    if (!task.open && task.front && task.result->status == ChangeStatus::applied) {
      due.push_back({task.seen->half, task.at_the_front()});
    }
    return !task.open;
  };
  Front front;
  for (int race = 0; race <= kMaxRaces && !tasks.empty(); ++race) {
    look(tasks, deadline);
    std::erase_if(tasks, ended);
    if (race < kMaxRaces) {
      write(tasks, front, deadline);
      std::erase_if(tasks, ended);
    }
  }
  for (Task& task : tasks) {
    task.end(conflict(changed_all_the_time(place_.queue, task.change->id)));
  }
  return results;
}

void Changer::look(std::vector<Task>& tasks, Deadline deadline) const {
  std::vector<std::string> ids;
  for (const Task& task : tasks) {
    if (task.look) {
      ids.push_back(task.change->id);
    }
  }
  if (ids.empty()) {
    return;
  }
  const auto records = parts_.runner.read(place_.table, attribute::kId, ids, deadline);
  for (Task& task : tasks) {
    if (!task.look) {
      continue;
    }
    task.look = false;
    if (!records) {
      Error error = table::store_error(place_, records.error());
      task.end({ChangeStatus::failed, 0,
                task.doubt ? Error(ErrorCode::unknown_outcome, error.message()) : std::move(error)});
      continue;
    }
    const auto found = records->find(task.change->id);
    judge(task, found == records->end() ? nullptr : &found->second);
  }
}

void Changer::judge(Task& task, const dynamo::Item* record) const {
  const Change& change = *task.change;
  if (task.doubt) {
    OutcomeRecovery::judge(task.trace(), record, *task.doubt);
    if (task.doubt->fate == table::StatementFate::done) {
      return task.end({ChangeStatus::applied, record == nullptr ? 0 : version_of(*record).number, {}});
    }
    if (task.doubt->fate == table::StatementFate::unknown) {
      return task.end({ChangeStatus::failed, 0,
                       Error(ErrorCode::unknown_outcome,
                             "nobody can tell yet whether message '" + change.id + "' was changed; look at it again")});
    }
    task.doubt.reset();
  }
  if (record == nullptr) {
    return task.end(not_found(place_, change.id));
  }
  task.before = version_of(*record);
  if (change.version && task.before.number != *change.version) {
    return task.end(conflict(changed_since(place_.queue, change.id)));
  }
  task.seen = decode_standing(*record);
  task.has_failure = record->find(attribute::kFailure) != record->end();
  switch (const auto verdict =
              core::judge(change.action, core::MessageState::of(*task.seen), parts_.clock.wall_now())) {
    case core::Verdict::apply:
      return;
    case core::Verdict::unchanged:
      return task.end({ChangeStatus::applied, task.before.number, {}});
    case core::Verdict::not_in_dlq:
    case core::Verdict::in_flight:
      return task.end(conflict(core::refusal(verdict, place_.queue, change.id)));
  }
}

std::optional<table::RecordWrite> Changer::statement(Task& task, Front& front, WallTime now, Deadline deadline) const {
  const Change& change = *task.change;
  if (change.action == ChangeAction::remove && !change.version) {
    return build_.remove_any(change.id);
  }
  const table::Expected expected = task.expected(now);
  if (task.removes()) {
    return build_.remove(expected, true);
  }
  if (change.action == ChangeAction::move_to_front) {
    const auto first = front.next(inspector_, task.seen->half, now, deadline);
    if (!first) {
      task.end({ChangeStatus::failed, 0, first.error()});
      return std::nullopt;
    }
    task.front = *first;
  }
  core::StateChange wanted = core::change(change, now, task.front);
  if (task.without_failure) {
    wanted.failure.reset();
  }
  const MayHave may_have{.suspect = !task.seen || task.seen->suspect, .failure = !task.seen || task.has_failure};
  task.nonce = parts_.nonces.anonymous();
  return build_.update(expected, {task.nonce, now}, attributes_of(wanted, may_have));
}

void Changer::write(std::vector<Task>& tasks, Front& front, Deadline deadline) const {
  const WallTime now = parts_.clock.wall_now();
  std::vector<table::RecordWrite> statements;
  std::vector<Task*> written;
  statements.reserve(tasks.size());
  for (Task& task : tasks) {
    if (auto made = statement(task, front, now, deadline)) {
      statements.push_back(std::move(*made));
      written.push_back(&task);
    }
  }
  auto outcomes = parts_.runner.run(std::move(statements), table::Repetition::until_known, deadline);
  for (std::size_t i = 0; i < written.size(); ++i) {
    note(*written[i], outcomes[i]);
  }
}

void Changer::note(Task& task, table::StatementOutcome& outcome) const {
  if (table::in_doubt(outcome)) {
    task.doubt = outcome;
  }
  switch (outcome.fate) {
    case table::StatementFate::done:
      // The removal of an absent record succeeds without an item. After a repeat it was our own first try that did it.
      if (task.removes() && outcome.item.empty() && !outcome.repeated) {
        return task.end(not_found(place_, task.change->id));
      }
      return task.end({ChangeStatus::applied, task.removes() ? 0 : task.before.next(), {}});
    case table::StatementFate::unknown:
    case table::StatementFate::refused:
      task.look = true;
      return;
    case table::StatementFate::failed:
      break;
  }
  const bool has_reason = task.change->action == ChangeAction::dead_letter && !task.change->failure.empty();
  if (outcome.error.kind == dynamo::ErrorKind::validation && has_reason && !task.without_failure) {
    task.without_failure = true;  // a record close to 400 KB has no room for the reason; the message matters more
    return;
  }
  task.end({ChangeStatus::failed, 0, table::store_error(place_, outcome.error)});
}

}  // namespace sluice::queue::dynamomq
