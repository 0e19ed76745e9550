#include "host/stores/outbox/dynamodb/lease_book.hpp"

#include <chrono>

#include "dynamo/item_reading.hpp"
#include "host/stores/outbox/dynamodb/marks.hpp"

namespace sluice::queue::outbox {
namespace {

using dynamo::AttributeValue;

constexpr std::string_view kCounter = "counter";
constexpr std::string_view kLease = "lease_ms";
constexpr std::string_view kBuckets = "buckets";
constexpr std::string_view kOwner = "owner";
constexpr std::string_view kEpoch = "epoch";

std::int64_t number_of(const dynamo::Item& item, std::string_view name) {
  return dynamo::whole_number(item, name).value_or(0);
}

}  // namespace

Result<void> DynamoDbLeaseBook::announce(const LeaseMember& member, Deadline deadline) {
  dynamo::PutItemRequest request;
  request.table = place_.table().table;
  request.item = key_of(place_.columns(), members_partition(), member.name);
  request.item.emplace(kCounter, AttributeValue::number(member.counter));
  request.item.emplace(
      kLease, AttributeValue::number(std::chrono::duration_cast<std::chrono::milliseconds>(member.lease).count()));
  request.item.emplace(kBuckets, AttributeValue::number(member.buckets));
  const auto written = place_.client().put_item(request, deadline);
  return written ? Result<void>() : Result<void>(place_.error_of(written.error()));
}

Result<std::vector<LeaseMember>> DynamoDbLeaseBook::members(Deadline deadline) {
  SLUICE_TRY(items, read(members_partition(), deadline));
  std::vector<LeaseMember> members;
  members.reserve(items->size());
  for (const auto& [name, item] : *items) {
    members.push_back({.name = name,
                       .counter = number_of(item, kCounter),
                       .lease = std::chrono::milliseconds(number_of(item, kLease)),
                       .buckets = static_cast<std::uint32_t>(number_of(item, kBuckets))});
  }
  return members;
}

Result<std::map<std::int64_t, dynamo::Item>> DynamoDbLeaseBook::read(const std::string& partition, Deadline deadline) {
  dynamo::QueryRequest request;
  request.table = place_.table().table;
  request.key_condition = "#b = :b";
  request.names.emplace("#b", kBucket);
  request.values.emplace(":b", partition);
  request.consistent = true;
  std::map<std::int64_t, dynamo::Item> items;
  do {
    auto page = place_.client().query(request, deadline);
    if (!page) {
      return place_.error_of(page.error());
    }
    for (dynamo::Item& item : page->items) {
      if (const auto id = place_.rows().id_of(item)) {
        items.emplace(*id, std::move(item));
      }
    }
    request.exclusive_start_key = std::move(page->last_evaluated_key);
  } while (!request.exclusive_start_key.empty());
  return items;
}

// No harm is done when a removal was wrong, either: who lives writes the whole item again.
void DynamoDbLeaseBook::bury(std::span<const LeaseMember> dead, Deadline deadline) {
  std::vector<dynamo::ItemWrite> writes;
  for (const LeaseMember& member : dead) {
    dynamo::DeleteItemRequest removal;
    removal.table = place_.table().table;
    removal.key = key_of(place_.columns(), members_partition(), member.name);
    removal.condition = "#c = :c";
    removal.names.emplace("#c", kCounter);
    removal.values.emplace(":c", AttributeValue::number(member.counter));
    writes.emplace_back(std::move(removal));
  }
  (void)place_.client().write_each(writes, deadline);
}

Result<std::map<std::uint32_t, BucketLease>> DynamoDbLeaseBook::buckets(Deadline deadline) {
  SLUICE_TRY(items, read(locks_partition(), deadline));
  std::map<std::uint32_t, BucketLease> leases;
  for (const auto& [bucket, item] : *items) {
    leases[static_cast<std::uint32_t>(bucket)] = {number_of(item, kOwner), number_of(item, kEpoch)};
  }
  return leases;
}

Result<std::vector<std::uint32_t>> DynamoDbLeaseBook::change_hands(std::span<const Handover> handovers,
                                                                   std::int64_t owner, Deadline deadline) {
  std::vector<dynamo::ItemWrite> writes;
  writes.reserve(handovers.size());
  for (const Handover& handover : handovers) {
    writes.emplace_back(put_of(handover, owner));
  }
  std::vector<std::uint32_t> changed;
  const auto results = place_.client().write_each(writes, deadline);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i]) {
      changed.push_back(handovers[i].bucket);
    } else if (results[i].error().kind != dynamo::ErrorKind::conditional_check_failed) {
      return place_.error_of(results[i].error());  // the session is over, and its locks with its lease
    }
  }
  return changed;
}

dynamo::PutItemRequest DynamoDbLeaseBook::put_of(const Handover& handover, std::int64_t owner) const {
  dynamo::PutItemRequest request;
  request.table = place_.table().table;
  request.item = key_of(place_.columns(), locks_partition(), handover.bucket);
  request.item.emplace(kOwner, AttributeValue::number(owner));
  request.item.emplace(kEpoch, AttributeValue::number(handover.before.epoch + 1));
  if (handover.before.epoch == 0) {
    request.condition = "attribute_not_exists(#e)";
  } else {
    request.condition = "#e = :e";
    request.values.emplace(":e", AttributeValue::number(handover.before.epoch));
  }
  request.names.emplace("#e", kEpoch);
  return request;
}

// What it still holds goes with its lease.
void DynamoDbLeaseBook::leave(const LeaseMember& member, Deadline deadline) {
  dynamo::DeleteItemRequest removal;
  removal.table = place_.table().table;
  removal.key = key_of(place_.columns(), members_partition(), member.name);
  (void)place_.client().delete_item(removal, deadline);  // otherwise the others bury it
}

Result<std::vector<MarkStatus>> DynamoDbLeaseBook::mark(std::span<const Mark> marks, const LeaseMember* /*member*/,
                                                        Deadline deadline) {
  return Marks(place_).write(marks, deadline);
}

}  // namespace sluice::queue::outbox
