#include "host/stores/leased/leased_writer.hpp"

#include <algorithm>
#include <utility>

#include "host/queue/message.hpp"
#include "host/stores/table/table_clock.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::leased {
namespace {

using dynamo::AttributeValue;
using dynamo::TransactAction;

// Where the chance begins in a sort key: after the priority and the time.
constexpr std::size_t kSortTimeEnd = 11;

TransactAction put(const std::string& table, dynamo::Item item) {
  return {.kind = TransactAction::Kind::put, .table = table, .item = std::move(item)};
}

TransactAction remove(const std::string& table, const Place& place) {
  return {.kind = TransactAction::Kind::remove, .table = table, .item = place.key()};
}

std::uint32_t shard_at(const Place& place) { return parse_partition(place.partition).value_or(Partition{}).shard; }

}  // namespace

Held Held::of(const Candidate& record) {
  return {.place = record.place,
          .version = record.version,
          .receive_count = record.receive_count,
          .marks = record.marks,
          .aliased = !record.own_id.empty(),
          .held_group = record.hold ? record.group : std::string()};
}

void drop_companions(const table::StoreParts& parts, const table::QueueTable& place, std::span<const Gone> gone,
                     Deadline deadline) {
  std::vector<RecordWrite> removals;
  for (const auto& [id, held] : gone) {
    if (held.aliased) {
      removals.push_back(remove_alias(place.table, place.queue, id, held.place));
    }
    if (!held.held_group.empty()) {
      removals.push_back(remove_hold(place.table, place.queue, shard_at(held.place), held.held_group, id));
    }
  }
  if (!removals.empty()) {
    parts.runner.run(std::move(removals), table::Repetition::until_known, deadline);
  }
}

core::StateChange end_of(const Completion& completion, const Held& held, WallTime now) {
  const std::uint32_t attempt = held.receive_count + (held.counted ? 0 : 1);
  core::StateChange change = core::end(completion, attempt, now);
  change.receives = change.receives.value_or(attempt);
  if (*change.receives == held.receive_count) {
    change.receives.reset();
  }
  return change;
}

// Whoever has lost sight of where a message lies finds it by its id. One with another version is another's by now.
void LeasedWriter::look_up(const std::vector<const Receipt*>& receipts, std::span<std::optional<Held>> held,
                           Results& known, Deadline deadline) const {
  std::set<std::string> ids;
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    if (!held[i]) {
      ids.insert(receipts[i]->id);
    }
  }
  if (ids.empty()) {
    return;
  }
  const auto found = find_records(parts_.client, place_, ids, deadline);
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    const Receipt& receipt = *receipts[i];
    if (held[i]) {
      continue;
    }
    if (!found) {
      known[i] = SettleResult{SettleStatus::failed, store_error(place_, found.error())};
    } else if (const table::FoundRecord& one = found->at(receipt.id); !one.there()) {
      // An earlier try whose answer was lost may be what took it away.
      const auto doubts = state_.doubts.about(receipt);
      const bool own = std::any_of(doubts.begin(), doubts.end(),
                                   [](const auto& doubt) { return doubt.action == CompletionAction::remove; });
      known[i] = SettleResult{own ? SettleStatus::applied : SettleStatus::lost, {}};
    } else if (half_of(one.item) != half_ || !may_be_at(receipt, Place::of(one.item))) {
      known[i] = SettleResult{SettleStatus::lost, {}};  // it has moved since, or was sent again under a free id
    } else {
      const Candidate record = Candidate::of(one.item);
      held[i] = Held::of(record);
      held[i]->counted = record.received;
      held[i]->aliased = one.alias && Place::of(*one.alias) == record.place;
      held[i]->version = receipt.version;  // by which it is fenced, whatever the record has become
    }
  }
}

table::DeliveryWrite LeasedWriter::end(const Ending& ending, std::int64_t version, WallTime now,
                                       bool with_failure) const {
  const Completion& completion = ending.completion;
  const Held& held = ending.held;
  const bool removes = completion.action == CompletionAction::remove;
  core::StateChange change = end_of(completion, held, now);
  if (!with_failure) {
    change.failure.reset();
  } else if (change.failure) {
    change.failure->earlier = state_.failures.earlier(completion.receipt.id);
  }
  table::DeliveryWrite write;
  write.receipt = &completion.receipt;
  write.action = completion.action;
  write.has_failure = change.failure.has_value();
  if (removes || moves(completion)) {
    write.record = remove_message(place_.table, {held.place, version});
  } else {
    write.nonce = parts_.nonces.next();
    write.record =
        update_message(place_.table, {held.place, version}, write.nonce, now, attributes_of(change, held.marks != 0));
  }
  if (!completion.effects && !moves(completion)) {
    return write;
  }
  write.in_transaction = &completion;
  if (held.fence) {
    write.beside.push_back(owner_check(place_.table, *held.fence));
  }
  if (removes && !held.held_group.empty()) {
    write.beside.push_back(remove(place_.table, hold_place(place_.queue, shard_at(held.place), held.held_group)));
  }
  if (removes && held.aliased) {
    write.beside.push_back(remove(place_.table, alias_place(place_.queue, completion.receipt.id)));
  }
  if (moves(completion)) {
    add_move(write, ending, change, now);
  }
  return write;
}

// A dead letter keeps its content, its history and its id; it begins anew where it lies then.
void LeasedWriter::add_move(table::DeliveryWrite& write, const Ending& ending, const core::StateChange& change,
                            WallTime now) const {
  const Completion& completion = ending.completion;
  const Held& held = ending.held;
  // Its chance is as good as it was; dead letters lie in the order of their deaths, whatever their priority.
  const std::string first = first_sort_key(Priority::normal, now);
  const std::string sort = first.substr(0, kSortTimeEnd) + held.place.sort.substr(kSortTimeEnd);
  const Place to{partition_of(place_.queue, Half::dlq, shard_at(held.place)), sort};
  dynamo::Item item = moved_item(*ending.record, to, due_of(sort));
  change_item(item, change);
  item.insert_or_assign(std::string(attribute::kVersion), AttributeValue::number(completion.receipt.version + 1));
  item.insert_or_assign(std::string(attribute::kNonce), parts_.nonces.next());
  item.insert_or_assign(std::string(attribute::kUpdated), stored_time(now));
  const Candidate candidate = Candidate::of(*ending.record);
  if (completion.hold_group && !candidate.group.empty()) {
    item.insert_or_assign(std::string(attribute::kHold), AttributeValue::number(1));
    dynamo::Item hold = hold_place(place_.queue, shard_at(held.place), candidate.group).key();
    hold.emplace(attribute::kOwnId, candidate.id);
    hold.emplace(attribute::kTargetSort, held.place.sort);
    hold.emplace(attribute::kGroup, candidate.group);
    write.beside.push_back(put(place_.table, std::move(hold)));
  }
  write.beside.push_back(put(place_.table, std::move(item)));
  write.beside.push_back(put_alias_anyway(place_, candidate.id, to));
}

bool LeasedWriter::has_moved(const Ending& ending, Deadline deadline) const {
  const Receipt& receipt = ending.completion.receipt;
  if (!ending.tried) {
    return false;
  }
  const auto found = find_records(parts_.client, place_, {receipt.id}, deadline);
  if (!found || !found->at(receipt.id).there()) {
    return false;
  }
  const Candidate record = Candidate::of(found->at(receipt.id).item);
  return record.place != ending.held.place && record.version == receipt.version + 1;
}

std::vector<SettleResult> LeasedWriter::settle(std::span<const Completion> completions,
                                               std::span<const std::optional<Held>> held, Deadline deadline) {
  Results results(completions.size());
  std::vector<std::optional<Held>> known(held.begin(), held.end());
  std::vector<const Receipt*> receipts;
  receipts.reserve(completions.size());
  for (const Completion& completion : completions) {
    receipts.push_back(&completion.receipt);
  }
  look_up(receipts, known, results, deadline);
  std::set<Place> to_move;
  for (std::size_t i = 0; i < completions.size(); ++i) {
    if (!results[i] && moves(completions[i])) {
      to_move.insert(known[i]->place);
    }
  }
  const auto records = read_places(parts_.client, place_, to_move, deadline);
  const WallTime now = parts_.clock.wall_now();
  std::vector<Ending> endings;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < completions.size(); ++i) {
    if (results[i]) {
      continue;
    }
    Ending ending{completions[i], *known[i]};
    if (moves(completions[i])) {
      if (!records) {
        results[i] = SettleResult{SettleStatus::failed, store_error(place_, records.error())};
        continue;
      }
      const auto doubts = state_.doubts.about(completions[i].receipt);
      ending.tried = std::any_of(doubts.begin(), doubts.end(), [](const table::DoubtfulWrite& doubt) {
        return doubt.action == CompletionAction::dead_letter;
      });
      const auto found = records->find(known[i]->place);
      if (found == records->end() || version_of(found->second).number != completions[i].receipt.version) {
        results[i] = SettleResult{has_moved(ending, deadline) ? SettleStatus::applied : SettleStatus::lost, {}};
        continue;
      }
      ending.record = &found->second;
    }
    endings.push_back(ending);
    places.push_back(i);
  }
  const auto write_of = [&](std::size_t k, std::int64_t version, bool with_failure) {
    table::DeliveryWrite write = end(endings[k], version, now, with_failure);
    write.index = k;
    return write;
  };
  std::vector<table::DeliveryWrite> writes;
  writes.reserve(endings.size());
  for (std::size_t k = 0; k < endings.size(); ++k) {
    writes.push_back(write_of(k, endings[k].completion.receipt.version, true));
  }
  writer_.commit(writes, write_of, deadline);
  std::vector<Gone> gone;
  for (std::size_t k = 0; k < writes.size(); ++k) {
    SettleResult& result = results[places[k]].emplace(writer_.result_of(writes[k]));
    if (result.status == SettleStatus::lost && !writes[k].never_applied && has_moved(endings[k], deadline)) {
      result.status = SettleStatus::applied;
    }
    if (result.status == SettleStatus::applied && writes[k].in_transaction == nullptr && writes[k].removes()) {
      gone.push_back({endings[k].completion.receipt.id, endings[k].held});
    }
  }
  drop_companions(parts_, place_, gone, deadline);
  std::vector<SettleResult> all;
  all.reserve(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    all.push_back(std::move(*results[i]));
    if (all.back().status == SettleStatus::applied || all.back().status == SettleStatus::lost) {
      state_.failures.forget(completions[i].receipt.id);
    }
  }
  return all;
}

table::DeliveryWrite LeasedWriter::extension(const Receipt& receipt, const Held& held, std::int64_t version,
                                             WallTime now, WallTime until) const {
  table::DeliveryWrite write;
  write.receipt = &receipt;
  write.nonce = parts_.nonces.next();
  write.record = update_message(place_.table, {held.place, version}, write.nonce, now,
                                attributes_of(core::extension(until), false));
  return write;
}

std::vector<ExtendResult> LeasedWriter::extend(std::span<const Receipt> receipts, std::span<std::optional<Held>> held,
                                               Duration visibility, Deadline deadline) {
  if (const auto sure = parts_.clock.be_sure(place_, visibility / 2, deadline); !sure) {
    return {receipts.size(), ExtendResult{SettleStatus::failed, {}, {}, sure.error()}};
  }
  std::vector<ExtendResult> results(receipts.size());
  const table::Moment now = parts_.now();
  const WallTime until = later(now.wall, visibility);
  std::vector<const Receipt*> all;
  for (const Receipt& receipt : receipts) {
    all.push_back(&receipt);
  }
  Results known(receipts.size());
  look_up(all, held, known, deadline);
  const auto write_of = [&](std::size_t i, std::int64_t version, bool) {
    table::DeliveryWrite write = extension(receipts[i], *held[i], version, now.wall, until);
    write.index = i;
    return write;
  };
  std::vector<table::DeliveryWrite> writes;
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    if (known[i]) {
      results[i].status = known[i]->status;
      results[i].error = std::move(known[i]->error);
    } else {
      writes.push_back(write_of(i, receipts[i].version, false));
    }
  }
  writer_.commit(writes, write_of, deadline);
  for (const table::DeliveryWrite& write : writes) {
    ExtendResult& result = results[write.index] = writer_.extended(write, table::until(now.steady, visibility));
    if (result.status == SettleStatus::applied) {
      held[write.index]->version = result.receipt.version;
    }
  }
  return results;
}

}  // namespace sluice::queue::leased
