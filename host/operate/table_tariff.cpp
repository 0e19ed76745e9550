#include "host/operate/table_tariff.hpp"

#include <string>

#include "host/stores/dynamomq/record.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/made_ids.hpp"
#include "host/stores/table/item_values.hpp"

namespace sluice::operate {

namespace {

// What a store adds to an item to recognise its own writes, and when one has changed it.
constexpr std::size_t kMarkBytes = 40;

// The bytes that DynamoDB counts for a message's item once somebody has changed it. What a layout cannot hold is not
// written either.

std::size_t item_bytes(const Result<dynamo::Item>& item, const queue::StoredMessage& stored) {
  return kMarkBytes + (item ? queue::table::item_bytes(*item) : payload_bytes(stored));
}

std::size_t leased_item_bytes(const queue::StoredMessage& stored, const std::string& queue) {
  // One under an id of its sender's own may lie anywhere: all places are of one length.
  const auto made = queue::leased::made_place(queue, stored.message.id);
  const queue::leased::Place place{.partition = queue::leased::partition_of(queue, stored.half, 0),
                                   .sort = std::string(queue::leased::kSortBytes, '0')};
  return item_bytes(queue::leased::encode_stored(stored, made.value_or(place)), stored);
}

using config::Layout;
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
  return layout_ == Layout::leased ? leased_item_bytes(message, queue_)
                                   : item_bytes(queue::dynamomq::encode_stored(message), message);
}

// Its alias, whether there is one or not, and the record: by the alias, or by an id that says where it lies.
cost::Spent TableTariff::leased_look(const queue::StoredMessage& message, std::size_t size) {
  const bool alias = has_alias(message);
  const bool both = alias && place_of_made_id(message.message.id);
  return {.requests = (alias ? 2 : 1) / kKeysPerRead,
          .read_units = (both ? 2.0 : 1.0) + units(size, kReadUnit),
          .write_units = 0};
}

cost::Spent TableTariff::leased_change(const queue::StoredMessage& message, ChangeAction action) const {
  const std::size_t size = bytes(message);
  const double record = units(size, kWriteUnit);
  cost::Spent cost = leased_look(message, size);
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
  if (!layout_) {
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
  if (!layout_) {
    return {};
  }
  const std::size_t size = bytes(message);
  const double record = units(size, kWriteUnit);
  if (layout_ == Layout::leased) {
    cost::Spent cost = leased_look(message, size);
    cost.requests = has_alias(message) ? 3 : 2;
    cost.write_units = record;
    return cost;
  }
  return {.requests = 2, .read_units = units(size, kReadUnit), .write_units = 2 * record};
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
