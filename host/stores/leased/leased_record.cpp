#include "host/stores/leased/leased_record.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text/number.hpp"
#include "base/text/utf8.hpp"
#include "base/timestamp.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "dynamo/item_reading.hpp"
#include "dynamo/signing/digest.hpp"
#include "host/stores/leased/made_ids.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/nonce.hpp"
#include "host/stores/table/record_layout.hpp"

namespace sluice::queue::leased {
namespace {

using dynamo::attribute_of;
using dynamo::AttributeValue;
using dynamo::Item;
using dynamo::whole_number;
using owned::append_digits;
using table::VersionMark;

std::string joined(std::string_view queue, std::string_view mark, std::string_view rest) {
  std::string whole(queue);
  whole += mark;
  whole += rest;
  return whole;
}

// Without zeros in front, so that no shard has two names.
std::optional<std::uint32_t> shard_number(std::string_view digits) {
  const auto number = parse_number<std::uint32_t>(digits);
  const bool plain = digits.size() == 1 || !digits.starts_with('0');
  return plain && number && *number < kMostShards ? number : std::nullopt;
}

Priority stored_priority(const Item& item) {
  const auto number = whole_number(item, attribute::kPriority);
  const bool known = number && *number >= 0 && *number < static_cast<std::int64_t>(kPriorities);
  return known ? static_cast<Priority>(*number) : Priority::normal;
}

std::string as_text(const AttributeValue& value) {
  if (const auto* text = value.get<std::string>()) {
    return *text;
  }
  const auto* number = value.get<dynamo::Number>();
  return number == nullptr ? std::string() : number->text;
}

/// The attributes that hold times and counts, by the name that records of all layouts have for them.
struct Named {
  std::string_view attribute;
  std::string_view name;
};
constexpr std::array kNumbers{
    Named{attribute::kSentAt, "sent_at"},
    Named{attribute::kCreatedAt, "created_at"},
    Named{attribute::kUpdated, "updated_at"},
    Named{attribute::kReceived, "received_at"},
    Named{attribute::kNotBefore, "invisible_until_at"},
    Named{attribute::kReceiveCount, "receive_count"},
};

// Absent, or a whole number that is not negative.
bool is_number_or_absent(const AttributeValue* value) {
  return value == nullptr || whole_number(value).value_or(-1) >= 0;
}

// Read as it is written: 1 is spelt by its absence, so that a condition on it means one thing.
constexpr std::int64_t kLeastNext = 2;
bool is_version(const AttributeValue* value) { return value == nullptr || whole_number(value).value_or(1) != 1; }

/// What of an item nobody understands.
struct Oddity {
  std::string_view name;  ///< that records of all layouts have for it; empty: they have none
  std::string found;
  std::string why;
};

std::vector<Oddity> oddities_of(const Item& item, const Place& place) {
  std::vector<Oddity> odd;
  if (!parse_partition(place.partition)) {
    odd.push_back(
        {"queue_type", place.partition, "\"" + clean_utf8(place.partition, 80) + "\" is no partition of messages"});
  }
  if (!is_sort_key(place.sort)) {
    odd.push_back(
        {"sent_at", place.sort, "its sort key \"" + clean_utf8(place.sort, 80) + "\" is none of a leased queue"});
  }
  if (const auto* version = attribute_of(item, attribute::kVersion); !is_version(version)) {
    odd.push_back({"version", as_text(*version),
                   "its version \"v\" is no whole number above 1, and 1 is spelt by leaving it out"});
  }
  if (const auto* own = attribute_of(item, attribute::kOwnId); own != nullptr && !own->is<std::string>()) {
    odd.push_back({{}, {}, "its id \"i\" is no text"});
  }
  for (const auto& [name, known_as] : kNumbers) {
    if (const auto* number = attribute_of(item, name); !is_number_or_absent(number)) {
      odd.push_back({known_as, as_text(*number),
                     "its \"" + std::string(name) + "\" (" + std::string(known_as) + ") is no whole number"});
    }
  }
  return odd;
}

void decode_body(Message& message, const Item& item) {
  const AttributeValue* type = attribute_of(item, attribute::kContentType);
  const AttributeValue* body = attribute_of(item, attribute::kBody);
  const auto* text = body == nullptr ? nullptr : body->get<std::string>();
  if (text != nullptr) {
    message.body = *text;
  } else if (const auto* bytes = body == nullptr ? nullptr : body->get<dynamo::Binary>()) {
    message.body = bytes->bytes;
    message.content_type = kOctetStream;
  } else if (body != nullptr) {
    // Somebody else's: shown as the JSON that it stands for.
    message.body = dynamo::to_plain_json(*body);
    message.content_type = kJson;
  }
  if (type != nullptr && type->is<dynamo::Number>()) {
    message.content_type = kJson;
  } else if (const auto* named = type == nullptr ? nullptr : type->get<std::string>()) {
    message.content_type = *named;
  }
}

constexpr std::array kKnown{
    attribute::kPartition,    attribute::kSort,        attribute::kBody,      attribute::kContentType,
    attribute::kAttributes,   attribute::kGroup,       attribute::kPriority,  attribute::kVersion,
    attribute::kReceiveCount, attribute::kNotBefore,   attribute::kFailure,   attribute::kOwnId,
    attribute::kMarks,        attribute::kSentAt,      attribute::kCreatedAt, attribute::kUpdated,
    attribute::kReceived,     attribute::kUniqueToken, attribute::kNonce,     attribute::kHold,
    attribute::kNative,       attribute::kCheckpoint,
};

// What the native form of a message calls its id and its body, whatever the layout: DynamoMQ's names.
constexpr std::string_view kNativeId = "id";
constexpr std::string_view kNativeData = "data";

Error invalid(std::string message) { return {ErrorCode::invalid, std::move(message)}; }

void put_content_type(Item& item, std::string_view type, bool text) {
  if (type == kJson) {
    item.emplace(attribute::kContentType, AttributeValue::number(1));
  } else if (type != (text ? kTextPlain : kOctetStream)) {
    item.emplace(attribute::kContentType, std::string(type));
  }
}

void put_place(Item& item, const Place& place) {
  item.insert_or_assign(std::string(attribute::kPartition), place.partition);
  item.insert_or_assign(std::string(attribute::kSort), place.sort);
}

void put_time(Item& item, std::string_view name, WallTime time, WallTime implied) {
  if (millis_of(time) != millis_of(implied)) {
    item.emplace(name, stored_time(time));
  }
}

// All that the fields say, but for the content.
void put_standing(Item& item, const StoredMessage& record, const Place& place) {
  put_place(item, place);
  put_priority(item, record.message.priority);
  put_time(item, attribute::kSentAt, record.message.sent_at, due_of(place.sort));
  put_time(item, attribute::kCreatedAt, record.created_at, record.message.sent_at);
  put_time(item, attribute::kUpdated, record.updated_at, record.created_at);
  if (record.version != 1) {
    item.emplace(attribute::kVersion, AttributeValue::number(record.version));
  }
  change_item(item, {.hidden_until = record.invisible_until,
                     .received_at = record.received_at,
                     .receives = record.message.attempt,
                     .marks = record.marks,
                     .failure = record.failure,
                     .checkpoint = record.message.checkpoint});
}

}  // namespace

// Keys, and the ids that are made of them.

dynamo::Item Place::key() const {
  return {{std::string(attribute::kPartition), partition}, {std::string(attribute::kSort), sort}};
}

Place Place::of(const dynamo::Item& item) {
  return {dynamo::text_of(item, attribute::kPartition), dynamo::text_of(item, attribute::kSort)};
}

std::string partition_of(std::string_view queue, Half half, std::uint32_t shard) {
  return joined(queue, half == Half::dlq ? "!" : "#", std::to_string(shard));
}

std::optional<Partition> parse_partition(std::string_view partition) {
  const auto mark = partition.find_last_of("#!");
  if (mark == std::string_view::npos || mark == 0) {
    return std::nullopt;
  }
  const auto shard = shard_number(partition.substr(mark + 1));
  if (!shard) {
    return std::nullopt;
  }
  return Partition{.queue = std::string(partition.substr(0, mark)),
                   .half = partition[mark] == '!' ? Half::dlq : Half::standard,
                   .shard = *shard};
}

Half half_of(const dynamo::Item& item) {
  const auto partition = parse_partition(Place::of(item).partition);
  return partition ? partition->half : Half::standard;
}

std::uint32_t shard_of(const dynamo::Item& item) {
  return parse_partition(Place::of(item).partition).value_or(Partition{}).shard;
}

std::string ownership_partition(std::string_view queue, Half half) {
  return joined(queue, half == Half::dlq ? "@dlq" : "@", "");
}

std::string ownership_sort(std::uint32_t shard) {
  std::string digits = std::to_string(shard);
  return digits.insert(0, digits.size() < 4 ? 4 - digits.size() : 0, '0');
}

std::optional<std::uint32_t> shard_of_ownership(std::string_view sort) {
  if (sort.size() != 4) {
    return std::nullopt;
  }
  const auto first = std::min(sort.find_first_not_of('0'), sort.size() - 1);
  return shard_number(sort.substr(first));
}

std::string hold_partition_of(std::string_view queue, std::uint32_t shard) {
  return joined(queue, "%", std::to_string(shard));
}

Place hold_place(std::string_view queue, std::uint32_t shard, std::string_view id) {
  return {hold_partition_of(queue, shard), dynamo::to_hex(dynamo::sha256(id))};
}

std::string made_id(std::string_view sort, std::uint32_t shard) {
  std::string id(sort);
  append_digits(id, shard, kShardDigits);
  return id;
}

std::optional<Place> made_place(std::string_view queue, std::string_view id) {
  auto made = place_of_made_id(id);
  if (!made) {
    return std::nullopt;
  }
  return Place{partition_of(queue, Half::standard, made->second), std::move(made->first)};
}

std::string alias_partition_of(std::string_view queue, std::string_view id) { return joined(queue, "#id/", id); }

Place alias_place(std::string_view queue, std::string_view id) {
  return {alias_partition_of(queue, id), std::string(kAlone)};
}

Place alias_target(const dynamo::Item& alias) {
  return {dynamo::text_of(alias, attribute::kTarget), dynamo::text_of(alias, attribute::kTargetSort)};
}

std::size_t most_id_bytes(std::string_view queue) {
  const std::size_t taken = alias_partition_of(queue, "").size();
  return taken < table::kMaxIdBytes ? table::kMaxIdBytes - taken : 0;
}

bool is_storable_id(std::string_view queue, std::string_view id) {
  return !id.empty() && id.size() <= most_id_bytes(queue) && is_utf8(id);
}

std::string unstorable_id(std::string_view queue) {
  return "a message id must be 1 to " + std::to_string(most_id_bytes(queue)) + " bytes of UTF-8 in a leased queue";
}

// What is read.

std::string id_of(const Item& item) {
  if (const auto* own = dynamo::find<std::string>(item, attribute::kOwnId)) {
    return *own;
  }
  const Place place = Place::of(item);
  const auto partition = parse_partition(place.partition);
  return partition ? made_id(place.sort, partition->shard) : place.sort;
}

std::optional<WallTime> time_of(const Item& item, std::string_view name) {
  const auto millis = whole_number(item, name).value_or(0);
  return millis > 0 ? std::optional(time_of_millis(millis)) : std::nullopt;
}

table::VersionMark version_of(const Item& item) {
  const auto* stored = attribute_of(item, attribute::kVersion);
  if (stored == nullptr) {
    return version_mark(1);
  }
  return {*stored, is_version(stored) ? whole_number(stored).value_or(0) : 0, kLeastNext};
}

table::VersionMark version_mark(std::int64_t version) {
  return table::VersionMark{.least_next = kLeastNext}.at(version);
}

core::MessageState state_of(const Item& item) {
  const std::string held = held_sort(item);
  return {.half = half_of(item),
          .sent_at = due_of(dynamo::text_of(item, attribute::kSort)),
          .hidden_until = time_of(item, attribute::kNotBefore),
          .received_at = time_of(item, attribute::kReceived),
          .receives = table::count_of(attribute_of(item, attribute::kReceiveCount)),
          .marks = table::count_of(attribute_of(item, attribute::kMarks)),
          .version = version_of(item).number,
          .priority = stored_priority(item),
          .group = dynamo::text_of(item, attribute::kGroup),
          .failure = table::decode_failure(attribute_of(item, attribute::kFailure)),
          .held_place = held.empty() ? std::nullopt : std::optional(due_of(held)),
          .checkpoint = table::bytes_of(item, attribute::kCheckpoint)};
}

std::string held_sort(const Item& item) { return dynamo::text_of(item, attribute::kHold); }

StoredMessage decode_standing(const Item& item) {
  StoredMessage record;
  record.message.id = id_of(item);
  state_of(item).put_into(record);
  record.message.sent_at = time_of(item, attribute::kSentAt).value_or(record.message.sent_at);
  record.created_at = time_of(item, attribute::kCreatedAt).value_or(record.message.sent_at);
  record.updated_at = time_of(item, attribute::kUpdated).value_or(record.created_at);
  return record;
}

StoredMessage decode_record(const Item& item) {
  StoredMessage record = decode_standing(item);
  for (const Oddity& odd : oddities_of(item, Place::of(item))) {
    if (!odd.name.empty()) {
      record.odd.insert_or_assign(std::string(odd.name), odd.found);
    }
  }
  decode_body(record.message, item);
  record.message.attributes = table::decode_attributes(attribute_of(item, attribute::kAttributes));
  return record;
}

std::string oddity_of(const Item& item) {
  const auto odd = oddities_of(item, Place::of(item));
  return odd.empty() ? std::string() : odd.front().why;
}

// What is written.

void put_priority(Item& item, Priority priority) {
  if (priority != Priority::normal) {
    item.emplace(attribute::kPriority, AttributeValue::number(static_cast<int>(priority)));
  }
}

AttributeValue stored_time(const std::optional<WallTime>& time) {
  return AttributeValue::number(time ? millis_of(*time) : 0);
}

Result<Item> encode_content(const NewMessage& message) {
  const std::string_view type = message.content_type.empty() ? kTextPlain : std::string_view(message.content_type);
  if (!is_utf8(type) || !is_utf8(message.group)) {
    return invalid("content type and group must be UTF-8");
  }
  const bool text = type != kOctetStream && is_utf8(message.body);
  Item item;
  item.emplace(attribute::kBody, text ? AttributeValue(message.body) : AttributeValue(dynamo::Binary{message.body}));
  put_content_type(item, type, text);
  if (!message.group.empty()) {
    item.emplace(attribute::kGroup, message.group);
  }
  SLUICE_TRY(attributes, table::encode_attributes(message.attributes));
  if (!attributes->empty()) {
    item.emplace(attribute::kAttributes, std::move(*attributes));
  }
  return item;
}

Result<Item> encode_record(const NewMessage& message, const NewRecord& record) {
  SLUICE_TRY(item, encode_content(message));
  put_place(*item, record.place);
  put_time(*item, attribute::kCreatedAt, record.now, due_of(record.place.sort));
  if (!record.own_id.empty()) {
    item->emplace(attribute::kOwnId, record.own_id);
  }
  put_priority(*item, message.priority);
  if (auto error = table::too_large(*item, kLifeBytes)) {
    return std::move(*error);
  }
  return item;
}

Result<Item> encode_stored(const StoredMessage& record, const Place& place) {
  SLUICE_TRY(content, encode_content(table::content_of(record.message)));
  put_standing(*content, record, place);
  if (id_of(*content) != record.message.id) {
    content->emplace(attribute::kOwnId, record.message.id);
  }
  if (!record.native.empty()) {
    if (const auto native = dynamo::decode_item(record.native); !native) {
      return invalid("the native form of message '" + record.message.id + "' is no item: " + native.error().message);
    }
    content->emplace(attribute::kNative, record.native);
  }
  if (auto error = table::too_large(*content, kLifeBytes)) {
    return std::move(*error);
  }
  return content;
}

std::string native_of(const Item& item) {
  if (const auto* kept = dynamo::find<std::string>(item, attribute::kNative)) {
    return *kept;
  }
  Item foreign;
  for (const auto& [name, value] : item) {
    if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end()) {
      foreign.emplace(name, value);
    }
  }
  const auto body = item.find(attribute::kBody);
  if (body != item.end() && !body->second.is<std::string>() && !body->second.is<dynamo::Binary>()) {
    foreign.emplace(kNativeData, body->second);
  }
  if (foreign.empty()) {
    return {};
  }
  foreign.insert_or_assign(std::string(kNativeId), id_of(item));
  return dynamo::encode_item(foreign);
}

Item moved_item(Item item, const Place& to, std::optional<WallTime> sent_at) {
  const std::string id = id_of(item);
  const auto sent_before = time_of(item, attribute::kSentAt).value_or(due_of(Place::of(item).sort));
  const auto created_at = time_of(item, attribute::kCreatedAt).value_or(sent_before);
  put_place(item, to);
  item.insert_or_assign(std::string(attribute::kOwnId), id);
  for (const std::string_view name : {attribute::kSentAt, attribute::kCreatedAt}) {
    if (const auto stale = item.find(name); stale != item.end()) {
      item.erase(stale);
    }
  }
  const WallTime sent = sent_at.value_or(sent_before);
  put_time(item, attribute::kSentAt, sent, due_of(to.sort));
  put_time(item, attribute::kCreatedAt, created_at, sent);
  return item;
}

// Writes.

table::Expected as_read(const Place& place, table::VersionMark version) {
  return {.id = place.partition, .version = std::move(version), .sort = place.sort};
}

// A shard that has changed hands since has another epoch. One that nobody can read is less than any.
dynamo::TransactAction owner_check(const std::string& table, const OwnerFence& fence) {
  return {.kind = dynamo::TransactAction::Kind::check,
          .table = table,
          .item = fence.ownership.key(),
          .condition = fence.epoch <= 0 ? "NOT #e > :e" : "#e = :e",
          .names = {{"#e", std::string(attribute::kEpoch)}},
          .values = {{":e", AttributeValue::number(std::max<std::int64_t>(0, fence.epoch))}}};
}

dynamo::TransactAction put_alias_anyway(const table::QueueTable& table, const std::string& id, const Place& target) {
  dynamo::TransactAction action{.table = table.table, .item = alias_place(table.queue, id).key()};
  action.item.emplace(attribute::kTarget, target.partition);
  action.item.emplace(attribute::kTargetSort, target.sort);
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
    action.values = {{":t", before->partition}, {":k", before->sort}};
  }
  return action;
}

dynamo::TransactAction remove_item(const table::QueueTable& table, const Place& place) {
  return {.kind = dynamo::TransactAction::Kind::remove, .table = table.table, .item = place.key()};
}

dynamo::TransactAction remove_record(const table::QueueTable& table, const dynamo::Item& read) {
  return table::request_of(removal_of(kNames, table.table, as_read(Place::of(read), version_of(read))));
}

std::optional<dynamo::TransactAction> free_group(const table::QueueTable& table, const dynamo::Item& read) {
  if (held_sort(read).empty()) {
    return std::nullopt;
  }
  return remove_item(table, hold_place(table.queue, shard_of(read), id_of(read)));
}

void change_item(dynamo::Item& item, const core::StateChange& change) {
  table::RecordChange made = attributes_of(kNames, change);
  for (auto& [name, value] : made.set) {
    // So an update spells that there is none.
    if (value == AttributeValue::number(0) || value == AttributeValue(dynamo::Binary{})) {
      made.removed.push_back(name);
    } else {
      item.insert_or_assign(std::string(name), std::move(value));
    }
  }
  for (const std::string_view name : made.removed) {
    item.erase(std::string(name));
  }
}

}  // namespace sluice::queue::leased
