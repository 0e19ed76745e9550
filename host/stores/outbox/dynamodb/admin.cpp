#include "host/stores/outbox/dynamodb/admin.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/timestamp.hpp"
#include "host/stores/outbox/dynamodb/row_moves.hpp"

namespace sluice::queue::outbox {
namespace {

using dynamo::AttributeValue;

constexpr std::size_t kMostNamed = 300;  // bytes of names in a finding

Error not_there(const OutboxPlace& place, const RowKey& key) {
  return {ErrorCode::not_found, "outbox '" + place.settings().name + "' has no pending or dead row " + to_string(key) +
                                    "; rows are named by bucket and id, and one that was sent is deleted"};
}

}  // namespace

Result<std::vector<Finding>> DynamoDbAdmin::inspect(Deadline deadline) {
  const auto table = place_.client().describe_table(place_.table().table, deadline);
  std::vector<Finding> findings;
  const std::string mend = "; `sluice outbox ddl " + place_.settings().name + "` shows the table that is needed";
  if (!table) {
    if (table.error().kind != dynamo::ErrorKind::resource_not_found) {
      return place_.error_of(table.error());
    }
    const Error missing = place_.error_of(table.error());
    findings.push_back({true, missing.code(), missing.message()});
    return findings;
  }
  const auto type_of = [&table](const std::string& name) {
    const auto found = table->attribute_types.find(name);
    return found == table->attribute_types.end() ? std::string() : found->second;
  };
  const std::string where = "table '" + place_.table().table + "': ";
  if (table->hash_key != kBucket || type_of(table->hash_key) != "S") {
    findings.push_back({true, ErrorCode::invalid,
                        where + "its partition key is " + table->hash_key + " (" + type_of(table->hash_key) +
                            ") and must be bucket (S)" + mend});
  }
  if (table->range_key != place_.columns().id || type_of(table->range_key) != "N") {
    findings.push_back({true, ErrorCode::invalid,
                        where + "its sort key is '" + table->range_key + "' (" + type_of(table->range_key) +
                            ") and must be " + place_.columns().id + " (N)" + mend});
  }
  if (table->status != "ACTIVE") {
    findings.push_back({true, ErrorCode::unavailable, where + "it is " + table->status + "; wait until it is ACTIVE"});
  }
  if (findings.empty()) {
    look_for_buckets(findings, where, deadline);
  }
  return findings;
}

void DynamoDbAdmin::look_for_buckets(std::vector<Finding>& findings, const std::string& where, Deadline deadline) {
  const auto found = place_.look_for_buckets(deadline);
  if (!found) {
    findings.push_back(
        {false, found.error().code(),
         "cannot look for rows beyond the configured buckets, which needs dynamodb:Scan: " + found.error().message()});
    return;
  }
  const auto add = [](std::string& list, const std::string& name) { list += (list.empty() ? "" : ", ") + name; };
  std::string unknown;
  bool more = found->more;
  for (const std::string& name : found->unknown) {
    more = more || unknown.size() > kMostNamed;
    if (unknown.size() <= kMostNamed) {
      add(unknown, name);
    }
  }
  if (!unknown.empty()) {
    findings.push_back({false, ErrorCode::invalid,
                        where + "rows in buckets " + unknown + (more ? " and others" : "") +
                            " are published by nobody: buckets are numbers below 4096 without leading zeros; mend "
                            "the writer, and move these rows to their aggregates' buckets"});
  }
  std::string higher;
  for (const std::uint32_t bucket : found->higher) {
    add(higher, std::to_string(bucket));
  }
  if (!higher.empty()) {
    findings.push_back({false, ErrorCode::invalid,
                        where + "rows in buckets " + higher +
                            " are beyond buckets = " + std::to_string(place_.table().buckets) +
                            "; they are published, but new buckets are found once an hour only: where writers still "
                            "name them, raise 'buckets' to " +
                            std::to_string(found->higher.back() + 1)});
  }
}

std::vector<std::uint32_t> DynamoDbAdmin::all_buckets(Deadline deadline) {
  std::vector<std::uint32_t> buckets(place_.table().buckets);
  std::iota(buckets.begin(), buckets.end(), 0U);
  const auto higher = place_.higher_buckets(deadline);
  buckets.insert(buckets.end(), higher.begin(), higher.end());
  return buckets;
}

Result<StoredRow> DynamoDbAdmin::get(const RowKey& key, Deadline deadline) {
  SLUICE_TRY(found, place_.find(std::span(&key, 1), deadline));
  if (found->empty()) {
    return not_there(place_, key);
  }
  return place_.rows().stored_row_of(found->begin()->second, place_.now());
}

Result<void> DynamoDbAdmin::each(const std::string& partition, const std::function<void(const dynamo::Item&)>& visit,
                                 Deadline deadline) {
  dynamo::QueryRequest query;
  query.table = place_.table().table;
  query.key_condition = "#b = :b";
  query.names.emplace("#b", kBucket);
  query.values.emplace(":b", partition);
  query.consistent = true;
  do {
    auto page = place_.client().query(query, deadline);
    if (!page) {
      return place_.error_of(page.error());
    }
    for (const dynamo::Item& item : page->items) {
      if (place_.rows().id_of(item)) {
        visit(item);
      }
    }
    query.exclusive_start_key = std::move(page->last_evaluated_key);
  } while (!query.exclusive_start_key.empty());
  return {};
}

Result<std::vector<StoredRow>> DynamoDbAdmin::list(const ListRows& request, Deadline deadline) {
  std::vector<StoredRow> rows;
  if (request.part == Part::sent || request.limit == 0) {
    return rows;
  }
  const WallTime now = place_.now();
  for (const std::uint32_t bucket : all_buckets(deadline)) {
    dynamo::QueryRequest query;
    query.table = place_.table().table;
    query.key_condition = "#b = :b";
    query.names.emplace("#b", kBucket);
    query.values.emplace(":b", request.part == Part::dead ? dead_partition_of(bucket) : partition_of(bucket));
    if (request.beyond) {
      // Of rows with that very id those are beyond it that lie in later buckets, or in earlier ones.
      const bool same_too = request.newest_first ? bucket < request.beyond->part : bucket > request.beyond->part;
      query.key_condition +=
          std::string(" AND #id ") + (request.newest_first ? "<" : ">") + (same_too ? "= :id" : " :id");
      query.names.emplace("#id", place_.columns().id);
      query.values.emplace(":id", AttributeValue::number(request.beyond->id));
    }
    query.forward = !request.newest_first;
    query.consistent = true;
    query.limit = static_cast<std::int64_t>(request.limit);
    const auto page = place_.client().query(query, deadline);
    if (!page) {
      return place_.error_of(page.error());
    }
    for (const dynamo::Item& item : page->items) {
      if (place_.rows().id_of(item)) {
        rows.push_back(place_.rows().stored_row_of(item, now));
      }
    }
  }
  std::sort(rows.begin(), rows.end(), [&request](const StoredRow& one, const StoredRow& other) {
    return request.newest_first ? other.row.key() < one.row.key() : one.row.key() < other.row.key();
  });
  rows.resize(std::min(rows.size(), request.limit));
  return rows;
}

Result<TableCounts> DynamoDbAdmin::count(const CountRequest& request, Deadline deadline) {
  TableCounts counts;
  const WallTime now = place_.now();
  std::optional<WallTime> oldest;
  const auto visit = [&](const dynamo::Item& item) {
    const StoredRow stored = place_.rows().stored_row_of(item, now);
    const Row& row = stored.row;
    if (request.details && !stored.last_error.empty()) {
      ++counts.by_error[stored.last_error];
    }
    if (row.dead) {
      ++counts.dead;
      return;
    }
    ++(row.wait ? counts.waiting : counts.ready);
    if (request.details) {
      ++counts.by_type[row.group.type];
    }
    counts.oldest_id = std::min(counts.oldest_id.value_or(row.id), row.id);
    if (row.created_at) {
      oldest = std::min(oldest.value_or(*row.created_at), *row.created_at);
    }
  };
  for (const std::uint32_t bucket : all_buckets(deadline)) {
    for (const std::string& partition : {partition_of(bucket), dead_partition_of(bucket)}) {
      SLUICE_PASS_ON(each(partition, visit, deadline));
    }
  }
  if (oldest) {
    counts.oldest = std::max(Duration::zero(), Duration(now - *oldest));
  }
  if (request.sent) {
    counts.sent = 0;
  }
  return counts;
}

Result<std::vector<RowChanged>> DynamoDbAdmin::change(std::span<const RowChange> changes, Deadline deadline) {
  std::vector<RowKey> keys;
  keys.reserve(changes.size());
  for (const RowChange& change : changes) {
    keys.push_back(change.key());
  }
  SLUICE_TRY(found, place_.find(keys, deadline));
  std::vector<RowChanged> results;
  results.reserve(changes.size());
  for (const RowChange& change : changes) {
    const auto item = found->find(change.key());
    if (item == found->end()) {
      results.push_back(RowChanged::not_found);
      continue;
    }
    SLUICE_TRY(result, change_one(change, item->second, deadline));
    results.push_back(*result);
  }
  return results;
}

Result<RowChanged> DynamoDbAdmin::change_one(const RowChange& change, const dynamo::Item& item, Deadline deadline) {
  const StoredRow stored = place_.rows().stored_row_of(item, place_.now());
  if (change.only_if && *change.only_if != stored.row.retries) {
    return RowChanged::conflict;
  }
  const auto moved = [](const Result<RowMove::Outcome>& outcome) -> Result<RowChanged> {
    SLUICE_PASS_ON(outcome);
    return *outcome == RowMove::Outcome::done ? RowChanged::applied : RowChanged::conflict;
  };
  switch (change.action) {
    case RowAction::redrive:
      return stored.row.dead ? moved(RowMove(place_, item).to_pending(deadline)) : RowChanged::conflict;
    case RowAction::reset:
      return stored.row.dead ? moved(RowMove(place_, item).to_pending(deadline))
                             : update_times(change, stored, deadline);
    case RowAction::delay:
      return update_times(change, stored, deadline);
    case RowAction::dead_letter:
      return stored.row.dead ? Result<RowChanged>(RowChanged::applied)
                             : moved(RowMove(place_, item)
                                         .to_dead_letters(std::max(stored.row.retries, place_.table().retry_limit),
                                                          change.error, deadline));
    case RowAction::discard:
    case RowAction::remove:
      return remove(change, stored.row, deadline);
  }
  return RowChanged::conflict;
}

Result<RowChanged> DynamoDbAdmin::update_times(const RowChange& change, const StoredRow& stored, Deadline deadline) {
  const Columns& columns = place_.columns();
  dynamo::UpdateItemRequest update;
  update.table = place_.table().table;
  update.key = key_of(columns, partition_with(stored.row), change.id);
  update.condition = still_tried(columns, stored.row.retries, update.names, update.values);
  update.names.emplace("#at", columns.retry_at);
  if (change.action == RowAction::delay) {
    update.update = "SET #at = :at";
    update.values.emplace(":at", format_timestamp(place_.now() + change.after));
  } else {
    update.update = "REMOVE #at, #tries";
    update.names.emplace("#tries", columns.retry_count);
  }
  return outcome(place_.client().update_item(update, deadline));
}

Result<RowChanged> DynamoDbAdmin::remove(const RowChange& change, const Row& row, Deadline deadline) {
  dynamo::DeleteItemRequest removal;
  removal.table = place_.table().table;
  removal.key = key_of(place_.columns(), partition_with(row), change.id);
  removal.condition = still_tried(place_.columns(), row.retries, removal.names, removal.values);
  return outcome(place_.client().delete_item(removal, deadline));
}

Result<RowChanged> DynamoDbAdmin::outcome(const dynamo::Result<dynamo::ItemOutput>& written) const {
  if (written) {
    return RowChanged::applied;
  }
  if (written.error().kind == dynamo::ErrorKind::conditional_check_failed) {
    return RowChanged::conflict;
  }
  return place_.error_of(written.error());
}

Result<std::uint64_t> DynamoDbAdmin::prune(const PruneRequest& /*request*/, Deadline /*deadline*/) {
  return std::uint64_t{0};
}

}  // namespace sluice::queue::outbox
