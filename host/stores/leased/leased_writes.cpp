#include "host/stores/leased/leased_writes.hpp"

#include <iterator>
#include <utility>

namespace sluice::queue::leased {
namespace {

using dynamo::AttributeValue;
using table::Expected;
using table::RecordNames;
using table::VersionMark;

// Of an alias, what it leads to takes the place of a version.
constexpr RecordNames kAliasNames{
    .hash = attribute::kPartition, .range = attribute::kSort, .version = attribute::kTargetSort};

// Of what holds a group back, the message that does.
constexpr RecordNames kHoldNames{
    .hash = attribute::kPartition, .range = attribute::kSort, .version = attribute::kOwnId};

RecordWrite about(RecordWrite::Kind kind, std::string_view table, const Place& place, VersionMark version) {
  RecordWrite write{.kind = kind, .table = table, .expected = {.id = place.partition, .version = std::move(version)}};
  write.expected.sort = place.sort;
  write.names = &kRecordNames;
  return write;
}

}  // namespace

RecordWrite remove_message(std::string_view table, const Fenced& fenced) {
  RecordWrite write = about(RecordWrite::Kind::remove, table, fenced.place, fenced.version);
  write.returning = true;
  return write;
}

RecordWrite update_message(std::string_view table, const Fenced& fenced, std::string_view nonce, WallTime now,
                           RecordChange change, bool returning) {
  RecordWrite write = about(RecordWrite::Kind::update, table, fenced.place, fenced.version);
  write.returning = returning;
  auto& set = write.change.set;
  set.reserve(change.set.size() + 3);
  set.emplace_back(attribute::kVersion, AttributeValue::number(next_version(fenced.version)));
  set.emplace_back(attribute::kNonce, std::string(nonce));
  set.emplace_back(attribute::kUpdated, stored_time(now));
  std::move(change.set.begin(), change.set.end(), std::back_inserter(set));
  write.change.removed = change.removed;
  return write;
}

RecordWrite remove_alias(std::string_view table, const std::string& queue, const std::string& id, const Place& target) {
  VersionMark leads_there;
  leads_there.stored = AttributeValue(target.sort);
  RecordWrite write = about(RecordWrite::Kind::remove, table, alias_place(queue, id), std::move(leads_there));
  write.names = &kAliasNames;
  return write;
}

RecordWrite remove_hold(std::string_view table, const std::string& queue, std::uint32_t shard, const std::string& group,
                        const std::string& id) {
  VersionMark is_why;
  is_why.stored = AttributeValue(id);
  RecordWrite write = about(RecordWrite::Kind::remove, table, hold_place(queue, shard, group), std::move(is_why));
  write.names = &kHoldNames;
  return write;
}

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

RecordChange attributes_of(const core::StateChange& change, bool marked) {
  RecordChange made;
  const auto time = [](std::optional<WallTime> at) { return at ? stored_time(*at) : AttributeValue::number(0); };
  if (change.receives) {
    made.set.emplace_back(attribute::kReceiveCount, AttributeValue::number(*change.receives));
  }
  if (change.received_at) {
    made.set.emplace_back(attribute::kReceived, time(*change.received_at));
  }
  if (change.hidden_until) {
    made.set.emplace_back(attribute::kNotBefore, time(*change.hidden_until));
  }
  if (change.suspect.value_or(false)) {
    made.set.emplace_back(attribute::kSuspect, AttributeValue::number(1));
  } else if (change.suspect && marked) {
    made.removed = attribute::kSuspect;
  }
  if (change.failure) {
    made.set.emplace_back(attribute::kFailure, table::encode_failure(*change.failure));
  }
  return made;
}

void change_item(dynamo::Item& item, const core::StateChange& change) {
  const RecordChange made = attributes_of(change, true);
  for (const auto& [name, value] : made.set) {
    const bool none = value == AttributeValue::number(0) || (name == attribute::kFailure && change.failure->empty());
    item.insert_or_assign(std::string(name), value);
    if (none) {
      item.erase(std::string(name));
    }
  }
  item.erase(std::string(made.removed));
}

}  // namespace sluice::queue::leased
