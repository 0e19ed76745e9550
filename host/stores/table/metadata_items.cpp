#include "host/stores/table/metadata_items.hpp"

#include "base/timestamp.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/table/table_clock.hpp"

namespace sluice::queue::table {

namespace {

using dynamo::text_of;

constexpr std::string_view kClaimed = "claimed";
constexpr std::string_view kDone = "done";
// DynamoDB may remove an item as soon as this has passed, by its own clock.
constexpr Duration kBeyond = std::chrono::hours(1);

dynamo::AttributeValue expiry(WallTime until) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>((until + kBeyond).time_since_epoch());
  return dynamo::AttributeValue::number(seconds.count());
}

dynamo::TransactAction put(const std::string& table, std::string id, const std::string& first, const std::string& token,
                           const LoneNames& names) {
  dynamo::Item item = names.key(std::move(id));
  item.emplace(attribute::kMarkFirst, first);
  item.emplace(attribute::kMarkToken, token);
  return put_message(table, item, names);
}

}  // namespace

std::string dedup_mark_id(const std::string& dedup_id) { return std::string(kDedupPrefix) + dedup_id; }
std::string unique_mark_id(const std::string& key) { return std::string(kUniquePrefix) + key; }

Mark Mark::of(const dynamo::Item* item) {
  if (item == nullptr) {
    return {};
  }
  return {.first = text_of(*item, attribute::kMarkFirst),
          .token = text_of(*item, attribute::kMarkToken),
          .until = text_of(*item, attribute::kMarkUntil),
          .mode = text_of(*item, attribute::kMarkMode) == kClaimed ? UniqueUntil::claimed : UniqueUntil::done};
}

dynamo::TransactAction put_message(const std::string& table, const dynamo::Item& item, const LoneNames& names) {
  dynamo::TransactAction action;
  action.table = table;
  action.item_or_key = item;
  action.names.emplace("#id", names.hash);
  action.condition = "attribute_not_exists(#id)";
  return action;
}

dynamo::TransactAction put_dedup_mark(const std::string& table, const NewMessage& message, const std::string& first,
                                      const std::string& token, WallTime now, const ItemScope& scope) {
  dynamo::TransactAction action = put(table, scope.dedup_id(message.dedup_id), first, token, scope.names);
  const WallTime until = now + message.dedup_window;
  action.item_or_key.emplace(attribute::kMarkUntil, format_timestamp(until));
  action.item_or_key.emplace(scope.names.expires, expiry(until));
  // Timestamps sort as their times do.
  action.condition += " OR #until <= :now";
  action.names.emplace("#until", attribute::kMarkUntil);
  action.values.emplace(":now", format_timestamp(now));
  return action;
}

dynamo::TransactAction put_unique_mark(const std::string& table, const NewMessage& message, const std::string& first,
                                       const std::string& token, const std::string& before, WallTime now,
                                       const ItemScope& scope) {
  dynamo::TransactAction action = put(table, scope.unique_id(message.unique_key), first, token, scope.names);
  action.item_or_key.emplace(attribute::kMarkMode,
                             std::string(message.unique_until == UniqueUntil::claimed ? kClaimed : kDone));
  action.item_or_key.emplace(scope.names.expires, expiry(now + kUniqueLife));
  if (!before.empty()) {
    action.condition += " OR #token = :before";
    action.names.emplace("#token", attribute::kMarkToken);
    action.values.emplace(":before", before);
  }
  return action;
}

}  // namespace sluice::queue::table
