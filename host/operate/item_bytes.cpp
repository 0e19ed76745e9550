#include "host/operate/item_bytes.hpp"

#include <algorithm>
#include <string>

#include "host/operate/json_value.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/leased/leased_schema.hpp"
#include "host/stores/leased/made_ids.hpp"

namespace sluice::operate {

namespace {

// "2026-11-20T23:14:00.906192364Z"
constexpr std::size_t kTimeBytes = 30;
namespace dynamomq = queue::dynamomq::attribute;
namespace leased = queue::leased::attribute;

// What every item of a DynamoMQ table names.
constexpr std::size_t kNameBytes =
    dynamomq::kId.size() + dynamomq::kData.size() + dynamomq::kReceiveCount.size() + dynamomq::kQueueType.size() +
    dynamomq::kVersion.size() + dynamomq::kCreatedAt.size() + dynamomq::kUpdatedAt.size() + dynamomq::kSentAt.size() +
    dynamomq::kReceivedAt.size() + dynamomq::kInvisibleUntilAt.size();
// What the store adds to recognise its own writes.
constexpr std::size_t kNonceBytes = dynamomq::kNonce.size() + 20;

// Of the leased layout: its keys with what is always in them, the body's name; the number of a shard beside the queue's
// name.
constexpr std::size_t kLeasedKeyBytes = leased::kPartition.size() + leased::kSort.size() + leased::kBody.size() +
                                        queue::leased::kSortBytes + queue::leased::kShardDigits;
constexpr std::size_t kLeasedSmallBytes = 3;
// What a change leaves: a version, who made it, when, and a time before which nothing is handed out.
constexpr std::size_t kLeasedChangeBytes = kLeasedSmallBytes + 1 + 20 + 9 + 9;

std::size_t number_bytes(std::string_view text) {
  const std::size_t mantissa = std::min(text.find_first_of("eE"), text.size());
  const auto digits =
      static_cast<std::size_t>(std::count_if(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(mantissa),
                                             [](char byte) { return byte >= '0' && byte <= '9'; }));
  return (digits + 1) / 2 + 1 + (text.starts_with('-') ? 1 : 0);
}

std::size_t json_bytes(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::null:
    case JsonValue::Kind::boolean:
      return 1;
    case JsonValue::Kind::number:
      return number_bytes(value.text);
    case JsonValue::Kind::string:
      return value.text.size();
    case JsonValue::Kind::array:
    case JsonValue::Kind::object:
      break;
  }
  std::size_t bytes = 3;
  for (const std::string& key : value.keys) {
    bytes += key.size();
  }
  for (const JsonValue& item : value.items) {
    bytes += json_bytes(item) + 1;
  }
  return bytes;
}

std::size_t body_bytes(const queue::Message& message) {
  if (message.content_type == queue::kJson) {
    if (const auto body = parse_json(message.body)) {
      return json_bytes(*body);
    }
  }
  return message.body.size();
}

std::size_t failure_bytes(const queue::Failure& failure, std::size_t name) {
  if (failure.empty()) {
    return 0;
  }
  return name + 3 + failure.error.size() + failure.handler.size() + failure.host.size() + kTimeBytes + 40;
}

std::size_t attribute_bytes(const queue::Message& message) {
  if (message.attributes.empty()) {
    return 0;
  }
  std::size_t bytes = 3;
  for (const auto& [name, value] : message.attributes) {
    bytes += name.size() + value.size() + 1;
  }
  return bytes;
}

}  // namespace

std::size_t dynamomq_item_bytes(const queue::StoredMessage& stored) {
  const queue::Message& message = stored.message;
  std::size_t bytes = kNameBytes + message.id.size() + body_bytes(message);
  bytes += queue::to_string(stored.half).size() + number_bytes(std::to_string(message.attempt)) +
           number_bytes(std::to_string(stored.version));
  bytes += 3 * kTimeBytes + (stored.received_at ? kTimeBytes : 0) + (stored.invisible_until ? kTimeBytes : 0);
  bytes += kNonceBytes + failure_bytes(stored.failure, dynamomq::kFailure.size());
  if (!message.attributes.empty()) {
    bytes += dynamomq::kAttributes.size() + attribute_bytes(message);
  }
  if (!message.group.empty()) {
    bytes += dynamomq::kGroup.size() + message.group.size();
  }
  return bytes;
}

std::size_t leased_item_bytes(const queue::StoredMessage& stored, const std::string& queue) {
  const queue::Message& message = stored.message;
  const bool plain = message.content_type.empty() || message.content_type == queue::kTextPlain ||
                     message.content_type == queue::kOctetStream;
  std::size_t bytes = kLeasedKeyBytes + queue.size() + 1 + message.body.size();
  if (!plain) {
    bytes += message.content_type == queue::kJson ? kLeasedSmallBytes : 1 + message.content_type.size();
  }
  bytes += message.attributes.empty() ? 0 : 1 + attribute_bytes(message);
  bytes += message.group.empty() ? 0 : 1 + message.group.size();
  bytes += message.priority == queue::Priority::normal ? 0 : kLeasedSmallBytes;
  bytes += message.attempt == 0 ? 0 : kLeasedSmallBytes;
  bytes += queue::leased::is_made_id(message.id) ? 0 : 1 + message.id.size();
  return bytes + failure_bytes(stored.failure, 1) + kLeasedChangeBytes;
}

}  // namespace sluice::operate
