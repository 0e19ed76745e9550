#include "host/stores/leased/leased_writer.hpp"

#include <algorithm>
#include <utility>

#include "base/ranges.hpp"
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

// Of an alias, what it leads to takes the place of a version.
constexpr table::LayoutNames kAliasNames{
    .hash = attribute::kPartition, .range = attribute::kSort, .version = attribute::kTargetSort};

// Its id does not say where it lies.
bool has_alias(const owned::Out& out) { return out.id != made_id(out.spot.second, out.spot.first); }

// What an end comes to. The receive count is named where the record has another one.
core::StateChange end_of(const Completion& completion, const owned::Out& out, WallTime now) {
  core::MessageState state{.half = out.state.half, .receives = out.state.receives + (out.counted ? 0 : 1)};
  if (!completion.failure.empty()) {
    state.failure = out.state.failure;
  }
  core::StateChange change = core::end(completion, state, now);
  if (completion.action != CompletionAction::keep) {
    change.receives = change.receives.value_or(state.receives);
  }
  if (change.receives == out.state.receives) {
    change.receives.reset();
  }
  return change;
}

}  // namespace

owned::Out out_of(const dynamo::Item& item) {
  owned::Out out{
      .spot = {shard_of(item), dynamo::text_of(item, attribute::kSort)}, .id = id_of(item), .state = state_of(item)};
  out.counted = out.state.received_at.has_value();
  out.state.checkpoint.clear();  // whoever has the message has it
  return out;
}

void drop_aliases(const table::StoreParts& parts, const table::QueueTable& place, std::span<const owned::Out> gone,
                  Deadline deadline) {
  std::vector<RecordWrite> removals;
  for (const auto& out : gone) {
    if (has_alias(out)) {
      const Place alias = alias_place(place.queue, out.id);
      removals.push_back(
          {.kind = RecordWrite::Kind::remove,
           .table = place.table,
           .expected = {.id = alias.partition, .version = {AttributeValue(out.spot.second)}, .sort = alias.sort},
           .names = &kAliasNames});
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

std::vector<const Receipt*> LeasedWriter::receipts() const {
  return mapped(leases_, [](const Lease& lease) { return &lease.receipt; });
}

std::optional<owned::Out> LeasedWriter::recall(const Receipt& receipt) const {
  const auto known = state_.outs.about(receipt);
  return known.empty() ? std::nullopt : std::optional(known.back());
}

// Whoever has lost sight of where a message lies finds it by its id. One with another version is another's by now.
void LeasedWriter::look_up(Deadline deadline) {
  std::set<std::string> ids;
  for (const Lease& lease : leases_) {
    if (!lease.out) {
      ids.insert(lease.receipt.id);
    }
  }
  if (ids.empty()) {
    return;
  }
  const auto found = find_records(parts_.client, place_, ids, deadline);
  for (Lease& lease : leases_) {
    const Receipt& receipt = lease.receipt;
    if (lease.out) {
      continue;
    }
    if (!found) {
      lease.decided = {SettleStatus::failed, store_error(place_, found.error())};
    } else if (const table::FoundRecord& one = found->at(receipt.id); !one.there()) {
      // An earlier try whose answer was lost may be what took it away.
      const bool own = has_doubt(receipt, CompletionAction::remove);
      lease.decided = {own ? SettleStatus::applied : SettleStatus::lost, {}};
    } else if (owned::Out out = out_of(one.item);
               out.state.half == half_ && owned::may_be_at(receipt.locator, out.spot.second)) {
      lease.out = std::move(out);
    } else {
      lease.decided = {SettleStatus::lost, {}};  // it has moved since, or was sent again under a free id
    }
  }
}

// What becomes a dead letter is written anew at another place, so that it is read as a whole.
void LeasedWriter::read_moving(std::span<const Completion> completions, Deadline deadline) {
  std::set<Place> places;
  for (std::size_t i = 0; i < completions.size(); ++i) {
    if (!leases_[i].decided && moves(completions[i])) {
      places.insert(place_of(*leases_[i].out));
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
    if (const auto found = records->find(place_of(*lease.out)); found != records->end()) {
      lease.record = found->second;
    } else {
      const bool own = has_doubt(lease.receipt, CompletionAction::dead_letter);
      lease.decided = {own ? SettleStatus::applied : SettleStatus::lost, {}};
    }
  }
}

table::DeliveryWrite LeasedWriter::end(const Completion& completion, std::size_t index, std::int64_t version,
                                       WallTime now, bool with_failure) const {
  const Lease& lease = leases_[index];
  table::DeliveryWrite write;
  write.carries(completion);
  write.decided = lease.decided;
  if (lease.decided) {
    return write;
  }
  const owned::Out& out = *lease.out;
  const bool removes = completion.action == CompletionAction::remove;
  core::StateChange change = end_of(completion, out, now);
  if (!with_failure) {
    change.failure.reset();
  }
  write.has_failure = change.failure.has_value();
  if (removes || moves(completion)) {
    write.record = removal_of(kNames, place_.table, as_read(place_of(out), version_mark(version)));
  } else {
    write.nonce = write.keeps ? parts_.nonces.padded(kLifeBytes) : parts_.nonces.next();
    write.record = update_of(kNames, place_.table, as_read(place_of(out), version_mark(version)), {write.nonce, now},
                             attributes_of(kNames, change, {.marks = out.state.marks != 0}));
  }
  const bool frees_group = removes && out.state.held_place;
  if (!completion.effects && !moves(completion) && !frees_group) {
    return write;
  }
  write.in_transaction = &completion;
  if (strict_fence_ && (completion.effects || moves(completion))) {
    const auto fence = OwnerFence::of({place_.queue, half_}, out.spot.first, out.epoch);
    write.beside.push_back(owner_check(place_.table, fence));
  }
  // Whoever has the message has what goes with it.
  if (removes && has_alias(out)) {
    write.beside.push_back(remove_item(place_, alias_place(place_.queue, out.id)));
  }
  if (frees_group) {
    write.beside.push_back(remove_item(place_, hold_place(place_.queue, out.spot.first, out.id)));
  }
  if (moves(completion)) {
    add_move(write, lease, change, now);
  }
  return write;
}

// A dead letter keeps its content, its history and its id; it begins anew where it lies then.
void LeasedWriter::add_move(table::DeliveryWrite& write, const Lease& lease, const core::StateChange& change,
                            WallTime now) const {
  const auto& [shard, from] = lease.out->spot;
  // Its chance is as good as it was; dead letters lie in the order of their deaths, whatever their priority.
  const std::string first = first_sort_key(Priority::normal, now);
  const std::string sort = first.substr(0, kSortTimeEnd) + from.substr(kSortTimeEnd);
  const Place to{partition_of(place_.queue, Half::dlq, shard), sort};
  dynamo::Item item = moved_item(lease.record, to, due_of(sort));
  change_item(item, change);
  touch(kNames, item, version_of(item), {parts_.nonces.next(), now});
  const std::string& group = lease.out->state.group;
  if (change.holds_group && !group.empty()) {
    item.insert_or_assign(std::string(attribute::kHold), from);
    dynamo::Item hold = hold_place(place_.queue, shard, lease.out->id).key();
    hold.emplace(attribute::kOwnId, lease.out->id);
    hold.emplace(attribute::kGroup, group);
    write.beside.push_back(put(place_.table, std::move(hold)));
  }
  write.beside.push_back(put(place_.table, std::move(item)));
  write.beside.push_back(put_alias_anyway(place_, lease.out->id, to));
}

std::vector<SettleResult> LeasedWriter::settle(std::span<const Completion> completions,
                                               std::span<const owned::Out> outs, Deadline deadline) {
  for (std::size_t i = 0; i < completions.size(); ++i) {
    const Receipt& receipt = completions[i].receipt;
    leases_.push_back({receipt, outs.empty() ? recall(receipt) : std::optional(outs[i])});
  }
  look_up(deadline);
  read_moving(completions, deadline);
  const WallTime now = parts_.clock.wall_now();
  const auto write_of = [&](std::size_t i, std::int64_t version, bool with_failure) {
    return end(completions[i], i, version, now, with_failure);
  };
  const auto writes = writer_.commit(receipts(), write_of, deadline);
  std::vector<SettleResult> results;
  std::vector<owned::Out> gone;
  for (std::size_t i = 0; i < completions.size(); ++i) {
    SettleResult& result = results.emplace_back(writer_.result_of(writes[i]));
    if (result.status != SettleStatus::applied || leases_[i].decided) {
      continue;
    }
    result.frees_group = writes[i].removes() && leases_[i].out->state.held_place;
    if (writes[i].keeps && outs.empty()) {
      Receipt renewed = completions[i].receipt;
      renewed.version = result.version;
      state_.outs.remember(renewed, *std::move(leases_[i].out));
    } else if (writes[i].removes() && writes[i].in_transaction == nullptr) {
      gone.push_back(*std::move(leases_[i].out));
    }
  }
  drop_aliases(parts_, place_, gone, deadline);
  return results;
}

table::DeliveryWrite LeasedWriter::update(std::size_t index, std::int64_t version, WallTime now,
                                          const core::StateChange& change) const {
  const Lease& lease = leases_[index];
  table::DeliveryWrite write;
  write.nonce = parts_.nonces.next();
  write.decided = lease.decided;
  if (!write.decided) {
    write.record = update_of(kNames, place_.table, as_read(place_of(*lease.out), version_mark(version)),
                             {write.nonce, now}, attributes_of(kNames, change, {.marks = false}));
  }
  return write;
}

std::vector<ExtendResult> LeasedWriter::extend(std::span<const Receipt> receipts, Duration visibility,
                                               Deadline deadline) {
  if (const auto sure = parts_.clock.be_sure(place_, visibility / 2, deadline); !sure) {
    return std::vector<ExtendResult>(receipts.size(), {SettleStatus::failed, {}, {}, sure.error()});
  }
  const table::Moment now = parts_.now();
  for (const Receipt& receipt : receipts) {
    leases_.push_back({receipt, recall(receipt)});
  }
  look_up(deadline);
  const auto write_of = [&](std::size_t i, std::int64_t version, bool) {
    return update(i, version, now.wall, core::extension(later(now.wall, visibility)));
  };
  auto results = writer_.extend(this->receipts(), table::until(now.steady, visibility), write_of, deadline);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].status == SettleStatus::applied && !leases_[i].decided) {
      state_.outs.remember(results[i].receipt, *std::move(leases_[i].out));
    }
  }
  return results;
}

std::vector<bool> LeasedWriter::write_claims(std::span<const owned::MessageRecords::ClaimWrite> claims,
                                             Deadline deadline) {
  const std::vector<Receipt> written_for = mapped(claims, [](const auto& claim) {
    return Receipt{.id = claim.out.id, .version = claim.out.state.version, .locator = claim.out.locator};
  });
  for (std::size_t i = 0; i < claims.size(); ++i) {
    leases_.push_back({written_for[i], claims[i].out});
  }
  const auto write_of = [&](std::size_t i, std::int64_t version, bool) {
    return update(i, version, parts_.clock.wall_now(), claims[i].change);
  };
  return mapped(writer_.commit(receipts(), write_of, deadline),
                [](const table::DeliveryWrite& write) { return write.outcome.fate == table::StatementFate::done; });
}

}  // namespace sluice::queue::leased
