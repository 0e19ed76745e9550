#include "host/stores/leased/leased_transactions.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "host/stores/leased/leased_writes.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::leased {

using dynamo::AttributeValue;
using dynamo::TransactAction;
using table::StatementFate;
using table::TransactionWriter;

namespace {

TransactAction put(const std::string& table, dynamo::Item item) {
  return {.kind = TransactAction::Kind::put, .table = table, .item_or_key = std::move(item)};
}

// Where the chance begins in a sort key: after the priority and the time.
constexpr std::size_t kSortTimeEnd = 11;

bool moves(const Completion& completion, Half half) {
  return completion.action == CompletionAction::dead_letter && half == Half::standard;
}

}  // namespace

// A dead letter keeps its content, its history and its id; it begins anew where it lies then.
void LeasedTransactions::add_move(Actions& actions, const Wanted& wanted, const core::StateChange& change,
                                  const dynamo::Item& record, WallTime now) const {
  const Completion& completion = *wanted.completion;
  const auto partition = parse_partition(wanted.held->place.partition).value_or(Partition{});
  // Its chance is as good as it was; dead letters lie in the order of their deaths, whatever their priority.
  const std::string first = first_sort_key(Priority::normal, now);
  const std::string sort = first.substr(0, kSortTimeEnd) + wanted.held->place.sort.substr(kSortTimeEnd);
  const Place to{partition_of(place_.queue, Half::dlq, partition.shard), sort};
  dynamo::Item item = moved_item(record, to, due_of(sort));
  change_item(item, change);
  item.insert_or_assign(std::string(attribute::kVersion), AttributeValue::number(completion.receipt.version + 1));
  item.insert_or_assign(std::string(attribute::kNonce), parts_.nonces.next());
  item.insert_or_assign(std::string(attribute::kUpdated), stored_time(now));
  const Candidate standing = Candidate::of(record);
  const bool holds = completion.hold_group && !standing.group.empty();
  if (holds) {
    item.insert_or_assign(std::string(attribute::kHold), AttributeValue::number(1));
    dynamo::Item hold = hold_place(place_.queue, partition.shard, standing.group).key();
    hold.emplace(attribute::kOwnId, standing.id);
    hold.emplace(attribute::kTargetSort, wanted.held->place.sort);
    hold.emplace(attribute::kGroup, standing.group);
    actions.push_back(put(place_.table, std::move(hold)));
  }
  actions.push_back(put(place_.table, std::move(item)));
  actions.push_back(put_alias_anyway(place_, standing.id, to));
}

LeasedTransactions::Actions LeasedTransactions::actions_of(const Wanted& wanted, const dynamo::Item* record,
                                                           WallTime now, bool with_failure) const {
  const Completion& completion = *wanted.completion;
  const Held& held = *wanted.held;
  const Fenced fenced{held.place, completion.receipt.version};
  const bool moved = moves(completion, half_);
  core::StateChange change = end_of(completion, held, now);
  state_.remember(completion.receipt, change);
  if (!with_failure) {
    change.failure.reset();
  }
  Actions actions;
  if (moved || completion.action == CompletionAction::remove) {
    actions.push_back(table::action_of(remove_message(place_.table, fenced)));
  } else {
    actions.push_back(table::action_of(
        update_message(place_.table, fenced, parts_.nonces.next(), now, attributes_of(change, held.marked))));
  }
  if (held.fence) {
    actions.push_back(owner_check(place_.table, *held.fence));
  }
  if (completion.action == CompletionAction::remove && !held.held_group.empty()) {
    const auto partition = parse_partition(held.place.partition).value_or(Partition{});
    actions.push_back({.kind = TransactAction::Kind::remove,
                       .table = place_.table,
                       .item_or_key = hold_place(place_.queue, partition.shard, held.held_group).key()});
  }
  if (moved) {
    add_move(actions, wanted, change, *record, now);
  } else if (completion.action == CompletionAction::remove && held.aliased) {
    actions.push_back({.kind = TransactAction::Kind::remove,
                       .table = place_.table,
                       .item_or_key = alias_place(place_.queue, completion.receipt.id).key()});
  }
  return actions;
}

std::vector<SettleResult> LeasedTransactions::settle(std::span<const Wanted> wanted, Deadline deadline) {
  std::vector<SettleResult> results(wanted.size());
  std::set<Place> to_move;
  for (const Wanted& one : wanted) {
    if (moves(*one.completion, half_)) {
      to_move.insert(one.held->place);
    }
  }
  const auto records = to_move.empty() ? dynamo::Result<PlacedItems>(PlacedItems())
                                       : read_places(parts_.client, place_, to_move, deadline);
  std::vector<Ready> ready;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool moved = moves(*wanted[i].completion, half_);
    if (moved && !records) {
      results[i] = {SettleStatus::failed, store_error(place_, records.error())};
      continue;
    }
    const auto found = moved ? records->find(wanted[i].held->place) : records->end();
    const bool there = moved && found != records->end() &&
                       Candidate::of(found->second).version == wanted[i].completion->receipt.version;
    if (moved && !there) {
      results[i] = {is_own_doing(wanted[i], deadline) ? SettleStatus::applied : SettleStatus::lost, {}};
      continue;
    }
    ready.push_back({i, &wanted[i], moved ? &found->second : nullptr});
  }
  // A record close to 400 KB has no room for the reason of its failure. The message matters more.
  for (const bool with_failure : {true, false}) {
    ready = write(ready, with_failure, results, deadline);
  }
  return results;
}

std::vector<LeasedTransactions::Ready> LeasedTransactions::write(std::span<const Ready> ready, bool with_failure,
                                                                 std::vector<SettleResult>& results,
                                                                 Deadline deadline) {
  const WallTime now = parts_.clock.wall_now();
  std::vector<TransactionWriter::Wanted> transactions;
  for (const Ready& one : ready) {
    transactions.push_back({one.wanted->completion, actions_of(*one.wanted, one.record, now, with_failure)});
  }
  auto made = TransactionWriter(parts_, place_, state_.transactions, parts_.layouts).write(transactions, deadline);
  std::vector<Ready> too_large;
  for (std::size_t k = 0; k < ready.size(); ++k) {
    const bool invalid =
        made[k].outcome.fate == StatementFate::failed && made[k].outcome.error.kind == dynamo::ErrorKind::validation;
    if (invalid && with_failure && !ready[k].wanted->completion->failure.empty()) {
      too_large.push_back(ready[k]);
    } else {
      results[ready[k].index] = result_of(*ready[k].wanted, made[k], deadline);
    }
  }
  return too_large;
}

SettleResult LeasedTransactions::result_of(const Wanted& wanted, TransactionWriter::Outcome& made, Deadline deadline) {
  if (made.refused) {
    return std::move(*made.refused);
  }
  const Completion& completion = *wanted.completion;
  switch (made.outcome.fate) {
    case StatementFate::done:
      state_.doubts.clear(completion.receipt);
      return {SettleStatus::applied, {}};
    case StatementFate::refused:
      if (!made.never_applied && is_own_doing(wanted, deadline)) {
        state_.doubts.clear(completion.receipt);
        return {SettleStatus::applied, {}};
      }
      return {SettleStatus::lost, {}};
    case StatementFate::unknown:
      state_.doubts.remember(completion.receipt, {{}, completion.action});
      return {SettleStatus::failed,
              Error(ErrorCode::unknown_outcome, store_error(place_, made.outcome.error).message())};
    case StatementFate::failed:
      break;
  }
  return {SettleStatus::failed, store_error(place_, made.outcome.error)};
}

// Whether an earlier call, whose answer was lost, has brought the message where this completion wants it.
bool LeasedTransactions::is_own_doing(const Wanted& wanted, Deadline deadline) const {
  const Completion& completion = *wanted.completion;
  const auto doubts = state_.doubts.about(completion.receipt);
  const bool tried =
      std::any_of(doubts.begin(), doubts.end(), [&](const auto& doubt) { return doubt.action == completion.action; });
  if (!tried) {
    return false;
  }
  const auto found = find_records(parts_.client, place_, {completion.receipt.id}, deadline);
  if (!found) {
    return false;
  }
  const auto one = found->find(completion.receipt.id);
  const bool there = one != found->end() && one->second.there();
  if (completion.action == CompletionAction::remove) {
    return !there;
  }
  if (!there) {
    return false;
  }
  const Candidate standing = Candidate::of(one->second.item);
  return standing.place != wanted.held->place && standing.version == completion.receipt.version + 1;
}

}  // namespace sluice::queue::leased
