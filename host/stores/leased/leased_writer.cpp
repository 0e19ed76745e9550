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

}  // namespace

owned::Out out_of(const dynamo::Item& item) {
  owned::Out out{
      .spot = {shard_of(item), dynamo::text_of(item, attribute::kSort)}, .id = id_of(item), .state = state_of(item)};
  out.counted = out.state.received_at.has_value();
  out.state.checkpoint.clear();  // whoever has the message has it
  return out;
}

void drop_aliases(const table::RecordLayout& layout, std::span<const owned::Out> gone, Deadline deadline) {
  std::vector<RecordWrite> removals;
  for (const auto& out : gone) {
    if (has_alias(out)) {
      const Place alias = alias_place(layout.place().queue, out.id);
      removals.push_back(
          {.kind = RecordWrite::Kind::remove,
           .table = layout.place().table,
           .expected = {.id = alias.partition, .version = {AttributeValue(out.spot.second)}, .sort = alias.sort},
           .names = &kAliasNames});
    }
  }
  if (!removals.empty()) {
    layout.parts().runner.run(std::move(removals), table::Repetition::until_known, deadline);
  }
}

bool LeasedWriter::has_doubt(const Receipt& receipt, CompletionAction about) const {
  const auto doubts = state_.doubts.about(receipt);
  return std::any_of(doubts.begin(), doubts.end(), [about](const auto& doubt) { return doubt.action == about; });
}

void LeasedWriter::hold(Lease& lease, const owned::Out& out) const {
  lease.record = as_read(place_of(out), version_mark(lease.receipt->version));
  lease.state = out.state;
  lease.state.receives += out.counted ? 0 : 1;
  lease.counted = out.counted;
}

void LeasedWriter::find(std::span<const Completion> completions, Deadline deadline) {
  by_call_ = outs_.empty();
  if (by_call_) {
    look_up(deadline);
  }
  for (std::size_t i = 0; i < leases_.size(); ++i) {
    if (!leases_[i].decided) {
      hold(leases_[i], *outs_[i]);
      leases_[i].moves =
          half_ == Half::standard && !completions.empty() && completions[i].action == CompletionAction::dead_letter;
    }
  }
  read_moving(deadline);
}

// Whoever has lost sight of where a message lies finds it by its id. One with another version is another's by now.
void LeasedWriter::look_up(Deadline deadline) {
  std::set<std::string> ids;
  for (const Lease& lease : leases_) {
    const auto known = state_.outs.about(*lease.receipt);
    if (known.empty()) {
      ids.insert(lease.receipt->id);
    }
    outs_.push_back(known.empty() ? std::nullopt : std::optional(known.back()));
  }
  if (ids.empty()) {
    return;
  }
  const auto found = layout_.find(ids, deadline);
  for (std::size_t i = 0; i < leases_.size(); ++i) {
    Lease& lease = leases_[i];
    const Receipt& receipt = *lease.receipt;
    if (outs_[i]) {
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
      outs_[i] = std::move(out);
    } else {
      lease.decided = {SettleStatus::lost, {}};  // it has moved since, or was sent again under a free id
    }
  }
}

// What becomes a dead letter is written anew at another place, so that it is read as a whole.
void LeasedWriter::read_moving(Deadline deadline) {
  std::set<Place> places;
  for (std::size_t i = 0; i < leases_.size(); ++i) {
    if (leases_[i].moves) {
      places.insert(place_of(*outs_[i]));
    }
  }
  auto records = read_places(parts_.client, place_, places, deadline);
  for (std::size_t i = 0; i < leases_.size(); ++i) {
    Lease& lease = leases_[i];
    if (lease.moves && !records) {
      lease.decided = {SettleStatus::failed, store_error(place_, records.error())};
    } else if (lease.moves && !records->contains(place_of(*outs_[i]))) {
      const bool own = has_doubt(*lease.receipt, CompletionAction::dead_letter);
      lease.decided = {own ? SettleStatus::applied : SettleStatus::lost, {}};
    }
  }
  if (records) {
    moving_ = *std::move(records);
  }
}

void LeasedWriter::add_beside(std::size_t index, const Completion& completion, WallTime now,
                              table::DeliveryWrite& write) const {
  const owned::Out& out = *outs_[index];
  const bool removes = write.change.removes;
  const bool moves = leases_[index].moves;
  const bool frees_group = removes && out.state.held_place;
  if (!completion.effects && !moves && !frees_group) {
    return;
  }
  write.in_transaction = &completion;
  if (strict_fence_ && (completion.effects || moves)) {
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
  if (moves) {
    add_move(write, out, now);
  }
}

// A dead letter keeps its content, its history and its id; it begins anew where it lies then.
void LeasedWriter::add_move(table::DeliveryWrite& write, const owned::Out& out, WallTime now) const {
  const auto& [shard, from] = out.spot;
  // Its chance is as good as it was; dead letters lie in the order of their deaths, whatever their priority.
  const std::string first = first_sort_key(Priority::normal, now);
  const std::string sort = first.substr(0, kSortTimeEnd) + from.substr(kSortTimeEnd);
  const Place to{partition_of(place_.queue, Half::dlq, shard), sort};
  dynamo::Item item = moved_item(moving_.at(place_of(out)), to, due_of(sort));
  change_item(item, write.change);
  touch(kNames, item, version_of(item), {parts_.nonces.next(), now});
  const std::string& group = out.state.group;
  if (write.change.holds_group && !group.empty()) {
    item.insert_or_assign(std::string(attribute::kHold), from);
    dynamo::Item hold = hold_place(place_.queue, shard, out.id).key();
    hold.emplace(attribute::kOwnId, out.id);
    hold.emplace(attribute::kGroup, group);
    write.beside.push_back(put(place_.table, std::move(hold)));
  }
  write.beside.push_back(put(place_.table, std::move(item)));
  write.beside.push_back(put_alias_anyway(place_, out.id, to));
}

void LeasedWriter::written(const table::DeliveryWrite& write, SettleResult& result) {
  if (result.status != SettleStatus::applied || leases_[write.index].decided) {
    return;
  }
  owned::Out& out = *outs_[write.index];
  if (write.removes()) {
    result.frees_group = out.state.held_place.has_value();
    if (write.in_transaction == nullptr) {
      gone_.push_back(std::move(out));
    }
  } else if (by_call_ && !write.ends()) {
    Receipt renewed = *write.receipt;
    renewed.version = write.version();
    state_.outs.remember(renewed, std::move(out));
  }
}

std::vector<SettleResult> LeasedWriter::settle(std::span<const Completion> completions,
                                               std::span<const owned::Out> outs, Deadline deadline) {
  outs_.assign(outs.begin(), outs.end());
  auto results = DeliveryWriter::settle(completions, deadline);
  drop_aliases(layout_, gone_, deadline);
  return results;
}

std::vector<bool> LeasedWriter::write_claims(std::span<const owned::MessageRecords::ClaimWrite> claims,
                                             Deadline deadline) {
  const std::vector<Receipt> written_for = mapped(claims, [](const auto& claim) {
    return Receipt{.id = claim.out.id, .version = claim.out.state.version, .locator = claim.out.locator};
  });
  for (std::size_t i = 0; i < claims.size(); ++i) {
    hold(leases_.emplace_back(Lease{.receipt = &written_for[i]}), claims[i].out);
  }
  const auto write_of = [&](std::size_t i, std::int64_t version, bool) {
    return update(leases_[i], version, parts_.clock.wall_now(), claims[i].change);
  };
  return mapped(commit(write_of, deadline),
                [](const table::DeliveryWrite& write) { return write.outcome.fate == table::StatementFate::done; });
}

}  // namespace sluice::queue::leased
