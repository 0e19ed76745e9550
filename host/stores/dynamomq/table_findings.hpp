#pragma once

#include <string>
#include <vector>

#include "dynamo/client.hpp"
#include "host/stores/dynamomq/table.hpp"

namespace sluice::queue::dynamomq {

enum class FindingLevel {
  unfit,    ///< it cannot hold a queue as it is
  waiting,  ///< it will do when DynamoDB is through with it
  advice,   ///< it works, and could be better
};

/// One thing about a table that is not as a queue wants it. A value; both texts are clauses without a full stop.
struct TableFinding {
  FindingLevel level = FindingLevel::unfit;
  std::string what;
  std::string mend;
};

/// Compares a table with what a queue needs: DynamoMQ's keys, types, index and projection. Empty: all is well. What
/// keeps it from holding a queue comes first.
std::vector<TableFinding> examine_table(const dynamo::TableDescription& table, const TableSpec& spec);

}  // namespace sluice::queue::dynamomq
