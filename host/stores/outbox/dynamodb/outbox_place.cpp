#include "host/stores/outbox/dynamodb/outbox_place.hpp"

#include <array>
#include <utility>

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
  const auto time = text == nullptr ? std::nullopt : parse_timestamp_or_end(*text);
  // Not before 1970, from where on a time can be taken from any other.
  return time ? std::optional(std::max(*time, WallTime())) : time;
}

// An aggregate type as it stands, or the resource of an ARN or RN.
bool names_type(const std::vector<std::string>& types, const std::string& type) {
  std::size_t colon = type.starts_with("arn:") || type.starts_with("rn:") ? 0 : std::string::npos;
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

Item key_of(const config::OutboxColumns& columns, const std::string& partition, std::int64_t id) {
  Item key;
  key.emplace(kBucket, partition);
  key.emplace(columns.id, AttributeValue::number(id));
  return key;
}

std::optional<std::int64_t> OutboxPlace::id_of(const Item& item) const {
  return dynamo::whole_number(item, table().columns.id);
}

Row OutboxPlace::row_of(const Item& item, WallTime now) const {
  const config::OutboxColumns& columns = table().columns;
  Row row;
  row.id = id_of(item).value_or(0);
  const auto* partition = dynamo::find<std::string>(item, kBucket);
  row.part = partition == nullptr ? 0 : bucket_in(*partition).value_or(0);
  row.bucket = row.part % table().buckets;  // whoever holds that one has those beyond the number too
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
  const auto payload = item.find(columns.payload);
  row.tombstone = payload != item.end() && payload->second.is<dynamo::Null>();
  read(columns.payload, row.payload, !row.tombstone);
  const auto retries = dynamo::whole_number(item, columns.retry_count).value_or(0);
  row.retries = retries >= 0 && retries < RowKey::kWhole ? static_cast<std::uint32_t>(retries) : 0;
  if (const auto due = time_of(item, columns.retry_at); due && *due > now) {
    row.wait = *due - now;
  }
  row.created_at = time_of(item, columns.created_at);
  for (const std::string& name : table().attributes) {
    if (const AttributeValue* value = value_of(item, name)) {
      row.attributes.emplace(name, text_of(*value));
    }
  }
  return row;
}

StoredRow OutboxPlace::stored_row_of(const Item& item, WallTime now) const {
  return {.row = row_of(item, now),
          .retry_at = time_of(item, table().columns.retry_at),
          .sent_at = std::nullopt,
          .last_error = dynamo::text_of(item, table().columns.last_error),
          .failed_at = time_of(item, table().columns.failed_at)};
}

bool wants(const Selection& filter, const std::string& type, const std::string& event) {
  const auto has = [&event](const std::vector<std::string>& events) {
    return std::find(events.begin(), events.end(), event) != events.end();
  };
  return (filter.types.empty() || names_type(filter.types, type)) && !names_type(filter.deny_types, type) &&
         (filter.events.empty() || has(filter.events)) && !has(filter.skip_events);
}

namespace {

using dynamo::AttributeValue;
using Value = RowEdit::Value;

constexpr std::uint32_t kMostBuckets = 4096;
constexpr std::size_t kMostUnknown = 100;
constexpr Duration kLookEvery = std::chrono::hours(1);
constexpr Duration kLookAgain = std::chrono::minutes(1);  // after one that failed
constexpr Duration kLookTime = std::chrono::seconds(10);  // of a reader's
// DynamoDB's largest number: a scan that begins behind it in one partition begins with the next partition.
constexpr const char* kLastId = "9.9999999999999999999999999999999999999E+125";

// What leases write beside the rows.
bool of_leases(std::string_view partition) {
  return partition.starts_with("lock/") || partition.starts_with("member/");
}

/// The condition that a row is still there with so many tries; `names` and `values` are added to.
std::string still_tried(const config::OutboxColumns& columns, std::optional<std::uint32_t> retries,
                        std::map<std::string, std::string>& names, dynamo::Item& values) {
  names.emplace("#id", columns.id);
  std::string condition = "attribute_exists(#id)";
  if (!retries) {
    return condition;
  }
  names.emplace("#tries", columns.retry_count);
  values.emplace(":tried", AttributeValue::number(*retries));
  if (*retries == 0) {
    values.emplace(":null", "NULL");
    return condition + " AND (attribute_not_exists(#tries) OR #tries = :tried OR attribute_type(#tries, :null))";
  }
  return condition + " AND #tries = :tried";
}

/// What an edit makes of one attribute.
struct Assignment {
  const char* name;  ///< without its '#'
  const std::string& column;
  Value kind;
  AttributeValue value;
};

std::array<Assignment, 4> assignments_of(const config::OutboxColumns& names, const RowEdit& edit, std::uint32_t retries,
                                         WallTime now) {
  return {{{"tries", names.retry_count, edit.tries, AttributeValue::number(retries_after(edit, retries).value_or(0))},
           {"at", names.retry_at, edit.due, format_timestamp(now + edit.after)},
           {"error", names.last_error, keeps_errors(names) ? edit.reason : Value::keep, edit.error},
           {"failed", names.failed_at, keeps_failed_at(names) ? edit.failed() : Value::keep, format_timestamp(now)}}};
}

bool other_keys(const dynamo::Error& error) {
  return error.kind == dynamo::ErrorKind::validation &&
         (error.message.find("key element") != std::string::npos ||
          error.message.find("Missing the key") != std::string::npos ||
          error.message.find("Query condition missed key schema") != std::string::npos);
}

}  // namespace

WallTime OutboxPlace::now() const {
  const auto reading = client_.clock_reading();
  return clock_.wall_now() + (reading ? reading->skew : Duration::zero());
}

void OutboxPlace::be_sure_of_time(Deadline deadline) {
  const auto reading = client_.clock_reading();
  if (!reading || reading->moved) {
    // Whatever the answer is, it tells the time; where none comes, the write will not fare better.
    static_cast<void>(client_.get_item({.table = table().table, .key = key_of(columns(), "time", 0)}, deadline));
  }
}

Result<std::map<RowKey, dynamo::Item>> OutboxPlace::find(std::span<const RowKey> rows, Deadline deadline) {
  std::vector<dynamo::Item> keys;
  for (const RowKey& row : rows) {
    if (row.part != RowKey::kWhole) {
      keys.push_back(key_of(columns(), partition_of(row.part), row.id));
      keys.push_back(key_of(columns(), dead_partition_of(row.part), row.id));
    }
  }
  std::map<RowKey, dynamo::Item> found;
  for (std::size_t first = 0; first < keys.size(); first += dynamo::kMaxBatchKeys) {
    const auto some = std::span(keys).subspan(first, std::min(dynamo::kMaxBatchKeys, keys.size() - first));
    SLUICE_TRY(items, told(client_.batch_get(table().table, some, deadline)));
    for (dynamo::Item& item : *items) {
      if (id_of(item)) {
        const RowKey key = row_of(item, {}).key();
        found.emplace(key, std::move(item));
      }
    }
  }
  return found;
}

dynamo::QueryRequest OutboxPlace::query_of(const std::string& partition, std::optional<std::int64_t> after) const {
  dynamo::QueryRequest query;
  query.table = table().table;
  query.consistent = true;
  query.key_condition = "#b = :b";
  query.names.emplace("#b", kBucket);
  query.values.emplace(":b", partition);
  if (after) {
    query.key_condition += " AND #id > :after";
    query.names.emplace("#id", columns().id);
    query.values.emplace(":after", AttributeValue::number(*after));
  }
  return query;
}

Result<void> OutboxPlace::each(const std::string& partition,
                               const std::function<void(std::int64_t id, dynamo::Item&&)>& visit, Deadline deadline) {
  dynamo::QueryRequest query = query_of(partition);
  do {
    SLUICE_TRY(page, told(client_.query(query, deadline)));
    for (dynamo::Item& item : page->items) {
      if (const auto id = id_of(item)) {
        visit(*id, std::move(item));
      }
    }
    query.exclusive_start_key = std::move(page->last_evaluated_key);
  } while (!query.exclusive_start_key.empty());
  return {};
}

dynamo::ItemWrite OutboxPlace::write_of(const std::string& partition, std::int64_t id, const RowEdit& edit) const {
  using Kind = dynamo::ItemWrite::Kind;
  dynamo::ItemWrite update{.kind = edit.sent ? Kind::remove : Kind::update};
  update.table = table().table;
  update.item = key_of(columns(), partition, id);
  update.condition = still_tried(columns(), edit.only_if, update.names, update.values);
  if (edit.sent) {
    return update;
  }
  std::string set;
  std::string removed;
  for (const Assignment& one : assignments_of(columns(), edit, 0, now())) {
    const std::string name = one.name;
    if (one.kind == Value::keep) {
      continue;
    }
    update.names.emplace("#" + name, one.column);
    if (one.kind == Value::set) {
      update.values.emplace(":" + name, one.value);
      set += (set.empty() ? "SET #" : ", #") + name + " = :" + name;
    } else {
      removed += (removed.empty() ? "REMOVE #" : ", #") + name;
    }
  }
  update.update = set + (set.empty() || removed.empty() ? "" : " ") + removed;
  return update;
}

std::optional<dynamo::Error> OutboxPlace::move(const dynamo::Item& row, const RowEdit& edit, Deadline deadline) {
  const Row read = row_of(row, {});
  const std::string pending = partition_of(read.part);
  const std::string dead = dead_partition_of(read.part);
  dynamo::TransactAction removal =
      write_of(edit.gives_up ? pending : dead, read.id, {.only_if = read.retries, .sent = true});
  dynamo::TransactAction arrival;
  arrival.table = table().table;
  arrival.condition = "attribute_not_exists(#id)";
  arrival.names.emplace("#id", columns().id);
  arrival.item = row;
  dynamo::Item& item = arrival.item;
  item.insert_or_assign(std::string(kBucket), edit.gives_up ? dead : pending);
  for (const Assignment& one : assignments_of(columns(), edit, read.retries, now())) {
    if (one.kind == Value::set) {
      item.insert_or_assign(one.column, one.value);
    } else if (one.kind == Value::clear) {
      item.erase(one.column);
    }
  }
  const dynamo::TransactWriteRequest request{.actions = {std::move(removal), std::move(arrival)}, .token = {}};
  const auto moved = client_.transact(request, deadline);
  return moved ? std::nullopt : std::optional(moved.error());
}

Result<FurtherBuckets> OutboxPlace::look_for_buckets(Deadline deadline) {
  std::set<std::uint32_t> higher;
  FurtherBuckets found;
  dynamo::ScanRequest scan;
  scan.table = table().table;
  scan.projection = "#b";
  scan.names.emplace("#b", kBucket);
  scan.limit = 1;
  scan.consistent = true;
  do {
    SLUICE_TRY(page, told(client_.scan(scan, deadline)));
    scan.exclusive_start_key = page->last_evaluated_key;
    const auto* name = page->items.empty() ? nullptr : dynamo::find<std::string>(page->items.front(), kBucket);
    if (name == nullptr) {
      continue;
    }
    scan.exclusive_start_key = key_of(columns(), *name, 0);
    scan.exclusive_start_key.insert_or_assign(columns().id, dynamo::Number{kLastId});
    const auto bucket = bucket_in(*name);
    if (bucket && *bucket < kMostBuckets) {
      if (*bucket >= table().buckets) {
        higher.insert(*bucket);
      }
    } else if (!of_leases(*name)) {
      found.unknown.insert(*name);
      found.more = found.unknown.size() == kMostUnknown;
    }
  } while (!scan.exclusive_start_key.empty() && !found.more);
  found.higher.assign(higher.begin(), higher.end());
  const MutexLock lock(mutex_);
  higher_ = found.higher;
  look_again_ = clock_.steady_now() + kLookEvery;
  return found;
}

std::vector<std::uint32_t> OutboxPlace::higher_buckets(Deadline deadline) {
  const SteadyTime now = clock_.steady_now();
  {
    const MutexLock lock(mutex_);
    if (look_again_ && now < *look_again_) {
      return higher_;
    }
    look_again_ = now + kLookAgain;
  }
  // `inspect` says why there is none.
  (void)look_for_buckets(Deadline::at(now + std::min(kLookTime, deadline.left(now))));
  const MutexLock lock(mutex_);
  return higher_;
}

Result<SourceId> OutboxPlace::source_id(Deadline deadline) {
  SLUICE_TRY(described, told(client_.describe_table(table().table, deadline)));
  return SourceId{"dynamodb-" + described->arn, {}};
}

Error OutboxPlace::error_of(const dynamo::Error& error) const {
  using dynamo::ErrorKind;
  const std::string where = "outbox '" + settings_.name + "': table '" + table().table + "'";
  switch (error.kind) {
    case ErrorKind::resource_not_found:
      return {ErrorCode::queue_missing, where + " does not exist in the region that is asked; `sluice outbox ddl " +
                                            settings_.name + "` shows how to make it"};
    case ErrorKind::access_denied:
      return {ErrorCode::denied,
              where + ": " + error.message + "; check the credentials, and that their policy allows this table"};
    case ErrorKind::no_credentials:
      return {ErrorCode::denied, where + ": " + error.message};
    case ErrorKind::throttled:
      return {ErrorCode::throttled,
              where + " is throttled: " + error.message + "; raise its limits, or spread its rows over more buckets"};
    case ErrorKind::validation:
      return {ErrorCode::invalid,
              where + ": " + error.message +
                  (other_keys(error) ? "; its keys must be bucket (S) and " + columns().id +
                                           " (N): `sluice outbox ddl " + settings_.name + "` shows how to make it"
                                     : std::string())};
    case ErrorKind::conditional_check_failed:
      return {ErrorCode::conflict, where + ": somebody else has changed the row meanwhile"};
    case ErrorKind::cancelled:
      return {ErrorCode::cancelled, where + ": " + error.message};
    case ErrorKind::timeout:
      return {error.outcome_unknown ? ErrorCode::unknown_outcome : ErrorCode::timeout, where + ": " + error.message};
    case ErrorKind::transport:
    case ErrorKind::server:
    case ErrorKind::malformed_response:
      break;
  }
  return {error.outcome_unknown ? ErrorCode::unknown_outcome : ErrorCode::unavailable, where + ": " + error.message};
}

}  // namespace sluice::queue::outbox
