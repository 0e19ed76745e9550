#include "host/stores/leased/leased_actions.hpp"

#include <utility>

#include "base/uuid.hpp"
#include "host/stores/table/nonce.hpp"

namespace sluice::queue::leased {
namespace {

// A token has 36 bytes at most: so much of a UUID, and a number for the table, as DynamoDB knows tokens by account.
constexpr std::size_t kChanceBytes = 27;
constexpr std::uint64_t kTables = 100'000'000;

}  // namespace

// A shard that has changed hands since has another epoch.
dynamo::TransactAction owner_check(const std::string& table, const OwnerFence& fence) {
  dynamo::TransactAction check{.kind = dynamo::TransactAction::Kind::check, .table = table};
  check.item_or_key = fence.ownership.key();
  check.condition = "#e = :e";
  check.names.emplace("#e", attribute::kEpoch);
  check.values.emplace(":e", dynamo::AttributeValue::number(fence.epoch));
  return check;
}

dynamo::TransactAction put_alias_anyway(const table::QueueTable& table, const std::string& id, const Place& target) {
  dynamo::TransactAction action;
  action.table = table.table;
  action.item_or_key = alias_place(table.queue, id).key();
  action.item_or_key.emplace(attribute::kTarget, target.partition);
  action.item_or_key.emplace(attribute::kTargetSort, target.sort);
  return action;
}

dynamo::TransactAction put_alias(const table::QueueTable& table, const std::string& id, const Place& target,
                                 const std::optional<Place>& before) {
  dynamo::TransactAction action = put_alias_anyway(table, id, target);
  action.condition = "attribute_not_exists(#p)";
  action.names.emplace("#p", attribute::kPartition);
  if (before) {
    action.condition += " OR (#t = :t AND #k = :k)";
    action.names.emplace("#t", attribute::kTarget);
    action.names.emplace("#k", attribute::kTargetSort);
    action.values.emplace(":t", before->partition);
    action.values.emplace(":k", before->sort);
  }
  return action;
}

dynamo::TransactAction remove_record(const table::QueueTable& table, const dynamo::Item& read) {
  dynamo::TransactAction action;
  action.kind = dynamo::TransactAction::Kind::remove;
  action.table = table.table;
  action.item_or_key = Place::of(read).key();
  action.condition = version_condition(version_of(read), action.names, action.values);
  return action;
}

std::optional<dynamo::TransactAction> free_group(const table::QueueTable& table, const dynamo::Item& read) {
  const Candidate record = Candidate::of(read);
  const auto partition = parse_partition(record.place.partition);
  if (!record.hold || !partition) {
    return std::nullopt;
  }
  dynamo::TransactAction action;
  action.kind = dynamo::TransactAction::Kind::remove;
  action.table = table.table;
  action.item_or_key = hold_place(table.queue, partition->shard, record.group).key();
  action.condition = "attribute_not_exists(#i) OR #i = :i";
  action.names.emplace("#i", attribute::kOwnId);
  action.values.emplace(":i", record.id);
  return action;
}

std::string transaction_token(const table::QueueTable& table, std::string_view chance) {
  return std::string(chance.substr(0, kChanceBytes)) + std::to_string(table::stable_hash(table.table) % kTables);
}

std::string transaction_token(const table::QueueTable& table, Random& random) {
  return transaction_token(table, make_uuid(random));
}

Place mark_place(std::string id) { return {std::move(id), std::string(kAlone)}; }

std::string unique_token(const NewMessage& message, std::string token) {
  if (message.unique_until == UniqueUntil::claimed) {
    token += kFreedAtClaim;
  }
  return token;
}

bool holds_key(const dynamo::Item& record, const table::Mark& mark) {
  const Candidate message = Candidate::of(record);
  const auto partition = parse_partition(message.place.partition);
  const bool queued = partition && partition->half == Half::standard && message.unique_token == mark.token;
  return queued && (mark.mode == UniqueUntil::done || (message.receive_count == 0 && !message.received));
}

}  // namespace sluice::queue::leased
