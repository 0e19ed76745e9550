// Messages to items: what is written. What is read is in leased_record.cpp.

#include <algorithm>
#include <array>
#include <utility>

#include "base/text/utf8.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/record_layout.hpp"

namespace sluice::queue::leased {
namespace {

using dynamo::AttributeValue;
using dynamo::Item;

constexpr std::array kKnown{
    attribute::kPartition,    attribute::kSort,        attribute::kBody,      attribute::kContentType,
    attribute::kAttributes,   attribute::kGroup,       attribute::kPriority,  attribute::kVersion,
    attribute::kReceiveCount, attribute::kNotBefore,   attribute::kFailure,   attribute::kOwnId,
    attribute::kSuspect,      attribute::kSentAt,      attribute::kCreatedAt, attribute::kUpdated,
    attribute::kReceived,     attribute::kUniqueToken, attribute::kNonce,     attribute::kHold,
    attribute::kNative,
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
  if (record.message.attempt != 0) {
    item.emplace(attribute::kReceiveCount, AttributeValue::number(record.message.attempt));
  }
  if (record.received_at) {
    item.emplace(attribute::kReceived, stored_time(*record.received_at));
  }
  if (record.invisible_until) {
    item.emplace(attribute::kNotBefore, stored_time(*record.invisible_until));
  }
  if (!record.failure.empty()) {
    item.emplace(attribute::kFailure, table::encode_failure(record.failure));
  }
  if (record.suspect) {
    item.emplace(attribute::kSuspect, AttributeValue::number(1));
  }
}

}  // namespace

void put_priority(Item& item, Priority priority) {
  if (priority != Priority::normal) {
    item.emplace(attribute::kPriority, AttributeValue::number(static_cast<int>(priority)));
  }
}

AttributeValue stored_time(WallTime time) { return AttributeValue::number(millis_of(time)); }

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
  auto content = encode_content(message);
  if (!content) {
    return content;
  }
  Item& item = *content;
  put_place(item, record.place);
  put_time(item, attribute::kCreatedAt, record.now, due_of(record.place.sort));
  if (!record.own_id.empty()) {
    item.emplace(attribute::kOwnId, record.own_id);
  }
  put_priority(item, message.priority);
  if (auto error = table::too_large(item, kLifeBytes)) {
    return std::move(*error);
  }
  return content;
}

Result<Item> encode_stored(const StoredMessage& record, const Place& place) {
  auto content = encode_content(table::content_of(record.message));
  if (!content) {
    return content;
  }
  put_standing(*content, record, place);
  if (made_id(place.sort, parse_partition(place.partition).value_or(Partition{}).shard) != record.message.id) {
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

void touch(Item& item, std::string_view nonce, WallTime now) {
  const std::int64_t version = next_version(version_of(item));
  item.insert_or_assign(std::string(attribute::kVersion), AttributeValue::number(version));
  item.insert_or_assign(std::string(attribute::kNonce), std::string(nonce));
  item.insert_or_assign(std::string(attribute::kUpdated), stored_time(now));
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

}  // namespace sluice::queue::leased
