#include "host/stores/leased/partition_reads.hpp"

#include <iterator>
#include <utility>

#include "host/stores/leased/leased_record.hpp"

namespace sluice::queue::leased {

dynamo::QueryRequest partition_query(const std::string& table, const std::string& partition, bool consistent) {
  dynamo::QueryRequest query;
  query.table = table;
  query.key_condition = "#p = :p";
  query.names.emplace("#p", attribute::kPartition);
  query.values.emplace(":p", partition);
  query.consistent = consistent;
  return query;
}

dynamo::Result<std::vector<dynamo::Item>> read_partition(dynamo::Client& client, const std::string& table,
                                                         const std::string& partition, bool consistent,
                                                         Deadline deadline) {
  dynamo::QueryRequest query = partition_query(table, partition, consistent);
  std::vector<dynamo::Item> items;
  do {
    SLUICE_TRY(page, client.query(query, deadline));
    std::move(page->items.begin(), page->items.end(), std::back_inserter(items));
    query.exclusive_start_key = std::move(page->last_evaluated_key);
  } while (!query.exclusive_start_key.empty());
  return items;
}

dynamo::Result<std::set<std::string>> read_held_groups(dynamo::Client& client, const table::QueueTable& place,
                                                       std::uint32_t shard, Deadline deadline) {
  SLUICE_TRY(items, read_partition(client, place.table, hold_partition_of(place.queue, shard), true, deadline));
  std::set<std::string> groups;
  for (const dynamo::Item& item : *items) {
    if (const auto* group = dynamo::find<std::string>(item, attribute::kGroup)) {
      groups.insert(*group);
    }
  }
  return groups;
}

}  // namespace sluice::queue::leased
