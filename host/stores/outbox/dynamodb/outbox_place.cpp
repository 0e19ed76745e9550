#include "host/stores/outbox/dynamodb/outbox_place.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace sluice::queue::outbox {
namespace {

constexpr std::size_t kKeysAtOnce = 100;
constexpr std::uint32_t kMostBuckets = 4096;
constexpr std::size_t kMostUnknown = 100;
constexpr Duration kLookEvery = std::chrono::hours(1);
constexpr Duration kLookAgain = std::chrono::minutes(1);  // after one that failed
constexpr Duration kLookTime = std::chrono::seconds(10);  // of a reader's
// DynamoDB's largest number: a scan that begins behind it in one partition begins with the next partition.
constexpr const char* kLastId = "9.9999999999999999999999999999999999999E+125";

// What leases write beside the rows (lease_book.hpp).
bool of_leases(std::string_view partition) {
  return partition.starts_with("lock/") || partition.starts_with("member/");
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
  for (std::size_t first = 0; first < keys.size(); first += kKeysAtOnce) {
    const auto some = std::span(keys).subspan(first, std::min(kKeysAtOnce, keys.size() - first));
    auto items = client_.batch_get(table().table, some, deadline);
    if (!items) {
      return error_of(items.error());
    }
    for (dynamo::Item& item : *items) {
      if (rows_.id_of(item)) {
        const RowKey key = rows_.row_of(item, {}).key();
        found.emplace(key, std::move(item));
      }
    }
  }
  return found;
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
    const auto page = client_.scan(scan, deadline);
    if (!page) {
      return error_of(page.error());
    }
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
  const auto described = client_.describe_table(table().table, deadline);
  if (!described) {
    return error_of(described.error());
  }
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
