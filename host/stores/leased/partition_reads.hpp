#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "dynamo/client.hpp"
#include "host/stores/table/table_errors.hpp"

/// Reads of whole partitions, for those that are small: heartbeats, ownership items, held groups.
namespace sluice::queue::leased {

/// Asks for a partition, from its head.
dynamo::QueryRequest partition_query(const std::string& table, const std::string& partition, bool consistent);

/// All that lies there, in the order of its keys.
dynamo::Result<std::vector<dynamo::Item>> read_partition(dynamo::Client& client, const std::string& table,
                                                         const std::string& partition, bool consistent,
                                                         Deadline deadline);

/// The groups of a shard that wait for an operator. Consistent.
dynamo::Result<std::set<std::string>> read_held_groups(dynamo::Client& client, const table::QueueTable& place,
                                                       std::uint32_t shard, Deadline deadline);

}  // namespace sluice::queue::leased
