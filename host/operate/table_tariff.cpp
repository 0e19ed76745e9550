#include "host/operate/table_tariff.hpp"

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

// The bytes that DynamoDB counts for a message's item once somebody has changed it; the store's own small additions are
// estimated.

std::size_t dynamomq_item_bytes(const queue::StoredMessage& stored) {
  const queue::Message& message = stored.message;
  std::size_t bytes = kNameBytes + message.id.size() + json_bytes(json_or_text(message));
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
  if (!message.checkpoint.empty()) {
    bytes += dynamomq::kCheckpoint.size() + message.checkpoint.size();
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
  bytes += message.checkpoint.empty() ? 0 : 1 + message.checkpoint.size();
  bytes += queue::leased::place_of_made_id(message.id) ? 0 : 1 + message.id.size();
  return bytes + failure_bytes(stored.failure, 1) + kLeasedChangeBytes;
}

using queue::ChangeAction;
using queue::leased::listed_keys;
using queue::leased::place_of_made_id;

constexpr double kChangesPerRequest = 25;
constexpr double kKeysPerRead = 100;
constexpr double kRecordsPerTransaction = 20;
constexpr std::size_t kWriteUnit = 1024;
constexpr std::size_t kReadUnit = 4096;
constexpr double kTransaction = 2;     // times the price of a plain write
constexpr double kAlias = 1;           // units of the small item that leads to a message
constexpr double kShardsOfABatch = 8;  // as many as a queue has unless it is told otherwise

double units(std::size_t bytes, std::size_t unit) {
  const std::size_t begun = (bytes + unit - 1) / unit;
  return static_cast<double>(begun);
}

bool stays_in_place(ChangeAction action) {
  return action == ChangeAction::remove || action == ChangeAction::set_visibility;
}

// No alias leads to a message whose id the table has made. What has been moved within its queue is found by one too,
// and a dead letter has been.
bool has_alias(const queue::StoredMessage& message) {
  return message.half == queue::Half::dlq || !place_of_made_id(message.message.id);
}

// An id that ends as the keys of foreign items are listed is looked for among those, in both halves.
double looks_for_strangers(const std::string& id) { return listed_keys(id) ? 2 : 0; }

}  // namespace

std::size_t TableTariff::bytes(const queue::StoredMessage& message) const {
  return layout_ == Layout::leased ? leased_item_bytes(message, queue_) : dynamomq_item_bytes(message);
}

// Its alias, whether there is one or not, and the record: by the alias, or by an id that says where it lies.
cost::Spent TableTariff::leased_look(const queue::StoredMessage& message) const {
  const bool alias = has_alias(message);
  const bool both = alias && place_of_made_id(message.message.id);
  return {.requests = (alias ? 2 : 1) / kKeysPerRead,
          .read_units = (both ? 2.0 : 1.0) + units(bytes(message), kReadUnit),
          .write_units = 0};
}

cost::Spent TableTariff::leased_change(const queue::StoredMessage& message, ChangeAction action) const {
  const double record = units(bytes(message), kWriteUnit);
  cost::Spent cost = leased_look(message);
  if (!stays_in_place(action)) {
    cost.requests += 1;
    cost.write_units = kTransaction * (2 * record + kAlias);
    return cost;
  }
  const bool drops_alias = action == ChangeAction::remove && has_alias(message);
  cost.requests += (drops_alias ? 2 : 1) / kChangesPerRequest;
  cost.write_units = record + (drops_alias ? kAlias : 0);
  return cost;
}

cost::Spent TableTariff::change(const queue::StoredMessage& message, ChangeAction action) const {
  if (layout_ == Layout::none) {
    return {};
  }
  if (layout_ == Layout::leased) {
    return leased_change(message, action);
  }
  return {.requests = 1 / kChangesPerRequest,
          .read_units = 0,
          .write_units = (stays_in_place(action) ? 2 : 3) * units(bytes(message), kWriteUnit)};
}

cost::Spent TableTariff::edit(const queue::StoredMessage& message) const {
  if (layout_ == Layout::none) {
    return {};
  }
  const double record = units(bytes(message), kWriteUnit);
  if (layout_ == Layout::leased) {
    cost::Spent cost = leased_look(message);
    cost.requests = has_alias(message) ? 3 : 2;
    cost.write_units = record;
    return cost;
  }
  return {.requests = 2, .read_units = units(bytes(message), kReadUnit), .write_units = 2 * record};
}

cost::Spent TableTariff::carry_out(const queue::StoredMessage& message) const {
  cost::Spent cost = change(message, ChangeAction::set_visibility);
  cost += change(message, ChangeAction::remove);
  return cost;
}

// In one transaction with looks at the shards that a batch lies in.
cost::Spent TableTariff::hold(const queue::StoredMessage& message) const {
  if (layout_ != Layout::leased) {
    return {};
  }
  return {.requests = 0,
          .read_units = 0,
          .write_units = (kTransaction - 1) * units(bytes(message), kWriteUnit) +
                         kTransaction * kShardsOfABatch / kChangesPerRequest};
}

cost::Spent TableTariff::carry_in(const queue::StoredMessage& message) const {
  // To put a record, or to show it, costs what a change costs that moves it in no index.
  cost::Spent shown = change(message, ChangeAction::set_visibility);
  if (layout_ != Layout::leased) {
    shown += shown;
    return shown;
  }
  // It keeps its id, and so has an alias. Where an id says that it would lie must be empty. What is looked for first is
  // not there.
  const bool made = place_of_made_id(message.message.id).has_value();
  const double besides = kAlias + (made ? 1 : 0);
  if (made && !has_alias(message)) {
    shown += {.requests = 1 / kKeysPerRead, .read_units = 1, .write_units = 0};
  }
  cost::Spent cost{.requests = 1 / kKeysPerRead + 1 / kRecordsPerTransaction,
                   .read_units = made ? 2.0 : 1.0 + looks_for_strangers(message.message.id),
                   .write_units = kTransaction * (units(bytes(message), kWriteUnit) + besides)};
  cost += shown;
  return cost;
}

}  // namespace sluice::operate
