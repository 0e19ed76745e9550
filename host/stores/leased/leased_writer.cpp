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

// What an end comes to. The receive count is named where the record has another one.
core::StateChange end_of(const Completion& completion, Half half, const Held& held,
                         const table::FailureMemory& failures, WallTime now) {
  const std::uint32_t attempt = held.receive_count + (held.counted ? 0 : 1);
  core::MessageState state{.half = half, .receives = attempt, .marks = held.marks};
  if (!completion.failure.empty()) {
    state.failure = failures.of(completion.receipt);
  }
  core::StateChange change = core::end(completion, state, now);
  if (completion.action != CompletionAction::keep) {
    change.receives = change.receives.value_or(attempt);
  }
  if (change.receives == held.receive_count) {
    change.receives.reset();
  }
  return change;
}

}  // namespace

Held Held::of(const Candidate& record) {
  return {.place = record.place,
          .version = record.version,
          .receive_count = record.receive_count,
          .marks = record.marks,
          .aliased = !record.own_id.empty(),
          .held_group = record.hold ? record.group : std::string()};
}

void Held::claimed(std::uint32_t attempt, bool suspect) {
  version += 1;
  receive_count = attempt;
  counted = true;
  marks |= suspect ? core::kSuspect : 0;
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

bool LeasedWriter::has_doubt(const Receipt& receipt, CompletionAction about) const {
  const auto doubts = state_.doubts.about(receipt);
  return std::any_of(doubts.begin(), doubts.end(), [about](const auto& doubt) { return doubt.action == about; });
}

bool LeasedWriter::went_on(const Receipt& receipt, const dynamo::Item& record) const {
  const auto doubts = state_.doubts.about(receipt);
  const std::string nonce = Candidate::of(record).nonce;
  return std::any_of(doubts.begin(), doubts.end(), [&nonce](const auto& doubt) {
    return doubt.nonce == nonce && doubt.action.value_or(CompletionAction::keep) == CompletionAction::keep;
  });
}

// Whoever has lost sight of where a message lies finds it by its id. One with another version is another's by now.
void LeasedWriter::look_up(Deadline deadline) {
  std::set<std::string> ids;
  for (const Lease& lease : leases_) {
    if (!lease.held) {
      ids.insert(lease.receipt.id);
    }
  }
  if (ids.empty()) {
    return;
  }
  const auto found = find_records(parts_.client, place_, ids, deadline);
  for (Lease& lease : leases_) {
    const Receipt& receipt = lease.receipt;
    if (lease.held) {
      continue;
    }
    if (!found) {
      lease.decided = {SettleStatus::failed, store_error(place_, found.error())};
    } else if (const table::FoundRecord& one = found->at(receipt.id); !one.there()) {
      // An earlier try whose answer was lost may be what took it away.
      const bool own = has_doubt(receipt, CompletionAction::remove);
      lease.decided = {own ? SettleStatus::applied : SettleStatus::lost, {}};
    } else if (half_of(one.item) != half_ || !may_be_at(receipt, Place::of(one.item))) {
      lease.decided = {SettleStatus::lost, {}};  // it has moved since, or was sent again under a free id
    } else {
      const Candidate record = Candidate::of(one.item);
      lease.held = Held::of(record);
      lease.held->counted = record.received;
      lease.held->aliased = one.alias && Place::of(*one.alias) == record.place;
      lease.held->version = receipt.version;  // by which it is fenced, whatever the record has become
    }
  }
}

// What becomes a dead letter is written anew at another place, so that it is read as a whole.
void LeasedWriter::read_moving(std::span<const Completion> completions, Deadline deadline) {
  std::set<Place> places;
  for (std::size_t i = 0; i < completions.size(); ++i) {
    if (!leases_[i].decided && moves(completions[i])) {
      places.insert(leases_[i].held->place);
    }
  }
  const auto records = read_places(parts_.client, place_, places, deadline);
  for (std::size_t i = 0; i < completions.size(); ++i) {
    Lease& lease = leases_[i];
    if (lease.decided || !moves(completions[i])) {
      continue;
    }
    if (!records) {
      lease.decided = {SettleStatus::failed, store_error(place_, records.error())};
      continue;
    }
    lease.tried = has_doubt(lease.receipt, CompletionAction::dead_letter);
    const auto found = records->find(lease.held->place);
    if (found == records->end() ||
        (version_of(found->second).number != lease.receipt.version && !went_on(lease.receipt, found->second))) {
      lease.decided = {has_moved(lease, deadline) ? SettleStatus::applied : SettleStatus::lost, {}};
    } else {
      lease.record = found->second;
    }
  }
}

table::DeliveryWrite LeasedWriter::end(const Completion& completion, std::size_t index, std::int64_t version,
                                       WallTime now, bool with_failure) const {
  const Lease& lease = leases_[index];
  table::DeliveryWrite write;
  write.index = index;
  write.receipt = &completion.receipt;
  write.carries(completion);
  write.decided = lease.decided;
  if (lease.decided) {
    return write;
  }
  const Held& held = *lease.held;
  const bool removes = completion.action == CompletionAction::remove;
  core::StateChange change = end_of(completion, half_, held, state_.failures, now);
  if (!with_failure) {
    change.failure.reset();
  }
  write.has_failure = change.failure.has_value();
  if (removes || moves(completion)) {
    write.record = remove_message(place_.table, {held.place, version});
  } else {
    write.nonce = write.keeps ? parts_.nonces.padded(kLifeBytes) : parts_.nonces.next();
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
    add_move(write, lease, change, now);
  }
  return write;
}

// A dead letter keeps its content, its history and its id; it begins anew where it lies then.
void LeasedWriter::add_move(table::DeliveryWrite& write, const Lease& lease, const core::StateChange& change,
                            WallTime now) const {
  const Place& from = lease.held->place;
  // Its chance is as good as it was; dead letters lie in the order of their deaths, whatever their priority.
  const std::string first = first_sort_key(Priority::normal, now);
  const std::string sort = first.substr(0, kSortTimeEnd) + from.sort.substr(kSortTimeEnd);
  const Place to{partition_of(place_.queue, Half::dlq, shard_at(from)), sort};
  dynamo::Item item = moved_item(lease.record, to, due_of(sort));
  change_item(item, change);
  touch(item, parts_.nonces.next(), now);
  const Candidate candidate = Candidate::of(lease.record);
  if (change.holds_group && !candidate.group.empty()) {
    item.insert_or_assign(std::string(attribute::kHold), AttributeValue::number(1));
    dynamo::Item hold = hold_place(place_.queue, shard_at(from), candidate.group).key();
    hold.emplace(attribute::kOwnId, candidate.id);
    hold.emplace(attribute::kTargetSort, from.sort);
    hold.emplace(attribute::kGroup, candidate.group);
    write.beside.push_back(put(place_.table, std::move(hold)));
  }
  write.beside.push_back(put(place_.table, std::move(item)));
  write.beside.push_back(put_alias_anyway(place_, candidate.id, to));
}

bool LeasedWriter::has_moved(const Lease& lease, Deadline deadline) const {
  if (!lease.tried) {
    return false;
  }
  const auto found = find_records(parts_.client, place_, {lease.receipt.id}, deadline);
  if (!found || !found->at(lease.receipt.id).there()) {
    return false;
  }
  const Candidate record = Candidate::of(found->at(lease.receipt.id).item);
  return record.place != lease.held->place && record.version == lease.receipt.version + 1;
}

std::vector<SettleResult> LeasedWriter::settle(std::span<const Completion> completions,
                                               std::span<const std::optional<Held>> held, Deadline deadline) {
  for (std::size_t i = 0; i < completions.size(); ++i) {
    leases_.push_back({completions[i].receipt, held[i]});
  }
  look_up(deadline);
  read_moving(completions, deadline);
  const WallTime now = parts_.clock.wall_now();
  const auto write_of = [&](std::size_t i, std::int64_t version, bool with_failure) {
    return end(completions[i], i, version, now, with_failure);
  };
  std::vector<table::DeliveryWrite> writes;
  writes.reserve(completions.size());
  for (std::size_t i = 0; i < completions.size(); ++i) {
    writes.push_back(write_of(i, completions[i].receipt.version, true));
  }
  writer_.commit(writes, write_of, deadline);
  std::vector<SettleResult> results;
  std::vector<Gone> gone;
  for (std::size_t i = 0; i < completions.size(); ++i) {
    SettleResult& result = results.emplace_back(writer_.result_of(writes[i]));
    const bool decided = leases_[i].decided.has_value();
    if (result.status == SettleStatus::lost && !decided && !writes[i].never_applied &&
        has_moved(leases_[i], deadline)) {
      result.status = SettleStatus::applied;
    }
    if (result.status == SettleStatus::applied && !decided && writes[i].in_transaction == nullptr &&
        writes[i].removes()) {
      gone.push_back({completions[i].receipt.id, *leases_[i].held});
    }
    if (has_ended(completions[i], result) || result.status == SettleStatus::lost) {
      state_.failures.forget(completions[i].receipt);
    }
  }
  drop_companions(parts_, place_, gone, deadline);
  return results;
}

std::vector<ExtendResult> LeasedWriter::extend(std::span<const Receipt> receipts, std::span<std::optional<Held>> held,
                                               Duration visibility, Deadline deadline) {
  if (const auto sure = parts_.clock.be_sure(place_, visibility / 2, deadline); !sure) {
    return std::vector<ExtendResult>(receipts.size(), {SettleStatus::failed, {}, {}, sure.error()});
  }
  const table::Moment now = parts_.now();
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    leases_.push_back({receipts[i], held[i]});
  }
  look_up(deadline);
  const auto write_of = [&](std::size_t i, std::int64_t version, bool) {
    table::DeliveryWrite write;
    write.index = i;
    write.receipt = &receipts[i];
    write.nonce = parts_.nonces.next();
    write.decided = leases_[i].decided;
    if (!write.decided) {
      const auto change = attributes_of(core::extension(later(now.wall, visibility)), false);
      write.record = update_message(place_.table, {leases_[i].held->place, version}, write.nonce, now.wall, change);
    }
    return write;
  };
  auto results = writer_.extend(receipts, table::until(now.steady, visibility), write_of, deadline);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].status == SettleStatus::applied && leases_[i].held) {
      held[i] = leases_[i].held;
      held[i]->version = results[i].receipt.version;
    }
  }
  return results;
}

}  // namespace sluice::queue::leased
