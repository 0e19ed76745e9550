#pragma once

#include <vector>

#include "dynamo/client.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "host/stores/table/table_finding.hpp"

namespace sluice::queue::dynamodb {

/// Compares a table with what a queue needs: DynamoMQ's keys, types, index and projection. Empty: all is well. What
/// keeps it from holding a queue comes first.
std::vector<table::TableFinding> examine_table(const dynamo::TableDescription& table, const TableSpec& spec);

}  // namespace sluice::queue::dynamodb
