#include "host/stores/outbox/dynamodb/row_items.hpp"

#include <algorithm>
#include <vector>

#include "base/timestamp.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "dynamo/item_reading.hpp"

namespace sluice::queue::outbox {
namespace {

constexpr std::string_view kDead = "dead#";

using dynamo::AttributeValue;
using dynamo::Item;

const AttributeValue* value_of(const Item& item, const std::string& name) {
  const auto found = item.find(name);
  return found == item.end() || found->second.is<dynamo::Null>() ? nullptr : &found->second;
}

// Text as it stands, everything else as JSON.
std::string text_of(const AttributeValue& value) {
  if (const auto* text = value.get<std::string>()) {
    return *text;
  }
  const auto* binary = value.get<dynamo::Binary>();
  return binary != nullptr ? binary->bytes : dynamo::to_plain_json(value);
}

std::optional<WallTime> time_of(const Item& item, const std::string& name) {
  const auto* text = name.empty() ? nullptr : dynamo::find<std::string>(item, name);
  return text == nullptr ? std::nullopt : parse_timestamp_or_end(*text);
}

// An aggregate type as it stands, or the resource of an ARN or RN.
bool names_type(const std::vector<std::string>& types, const std::string& type) {
  std::size_t colon = 0;
  for (int i = 0; i < 5 && colon != std::string::npos; ++i) {
    colon = type.find(':', i == 0 ? 0 : colon + 1);
  }
  const std::string resource = colon == std::string::npos ? type : type.substr(colon + 1);
  return std::any_of(types.begin(), types.end(),
                     [&](const std::string& one) { return one == type || one == resource; });
}

}  // namespace

std::string partition_of(std::uint32_t bucket) { return std::to_string(bucket); }

std::string dead_partition_of(std::uint32_t bucket) { return std::string(kDead) + std::to_string(bucket); }

std::optional<std::uint32_t> bucket_in(std::string_view partition) {
  if (partition.starts_with(kDead)) {
    partition.remove_prefix(kDead.size());
  }
  const auto key = row_key_of(std::string(partition) + "/0");
  return key && partition_of(key->part) == partition ? std::optional(key->part) : std::nullopt;
}

Item key_of(const Columns& columns, const std::string& partition, std::int64_t id) {
  Item key;
  key.emplace(kBucket, partition);
  key.emplace(columns.id, AttributeValue::number(id));
  return key;
}

std::optional<std::int64_t> RowItems::id_of(const Item& item) const {
  return dynamo::whole_number(item, table_.columns.id);
}

Row RowItems::row_of(const Item& item, WallTime now) const {
  const Columns& columns = table_.columns;
  Row row;
  row.id = id_of(item).value_or(0);
  const auto* partition = dynamo::find<std::string>(item, kBucket);
  row.part = partition == nullptr ? 0 : bucket_in(*partition).value_or(0);
  row.bucket = row.part % table_.buckets;  // whoever holds that one has those beyond the number too
  row.dead = partition != nullptr && partition->starts_with(kDead);
  const auto read = [&](const std::string& name, std::string& out, bool needed) {
    if (const AttributeValue* value = value_of(item, name)) {
      out = text_of(*value);
    } else if (needed && row.unreadable.empty()) {
      row.unreadable = name + " is missing";
    }
  };
  read(columns.aggregate_type, row.group.type, true);
  read(columns.aggregate_id, row.group.id, false);
  read(columns.event, row.event, true);
  read(columns.payload, row.payload, true);
  const auto retries = dynamo::whole_number(item, columns.retry_count).value_or(0);
  row.retries = retries >= 0 && retries < RowKey::kWhole ? static_cast<std::uint32_t>(retries) : 0;
  if (const auto due = time_of(item, columns.retry_at); due && *due > now) {
    row.wait = *due - now;
  }
  row.created_at = time_of(item, columns.created_at);
  for (const std::string& name : columns.attributes) {
    if (const AttributeValue* value = value_of(item, name)) {
      row.attributes.emplace(name, text_of(*value));
    }
  }
  return row;
}

StoredRow RowItems::stored_row_of(const Item& item, WallTime now) const {
  StoredRow stored{.row = row_of(item, now),
                   .retry_at = time_of(item, table_.columns.retry_at),
                   .sent_at = std::nullopt,
                   .last_error = {}};
  if (const auto* error = dynamo::find<std::string>(item, table_.columns.last_error)) {
    stored.last_error = *error;
  }
  return stored;
}

bool wants(const Filter& filter, const std::string& type, const std::string& event) {
  const auto has = [&event](const std::vector<std::string>& events) {
    return std::find(events.begin(), events.end(), event) != events.end();
  };
  return (filter.types.empty() || names_type(filter.types, type)) && !names_type(filter.deny_types, type) &&
         (filter.events.empty() || has(filter.events)) && !has(filter.skip_events);
}

}  // namespace sluice::queue::outbox
