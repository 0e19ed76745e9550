#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dynamo/client.hpp"
#include "host/cli/arguments.hpp"
#include "host/cli/command.hpp"
#include "host/cli/exit.hpp"
#include "host/stores/dynamomq/table.hpp"
#include "host/runtime/dynamodb_connection.hpp"

namespace sluice::cli {

/// The table that a `table` command is about, and where it is. A value.
struct TableTarget {
  queue::dynamomq::TableSpec spec;
  runtime::DynamoDbConnection::Options connection;
  std::string options;  ///< with which the user named it; for messages
};

/// A command's own flags, and after them those that name a table: --queue, --table, --index, --endpoint, --region,
/// --config, --output.
std::vector<Flag> with_table_flags(std::vector<Flag> own);

/// As QueueSession finds its store: from the options and AWS's environment with --table, with --endpoint or --index and
/// no --queue, and where there is no host file; else from the host file, over which options win. Exit 64 for names that
/// no table can have, 78 for the host file.
OrExit<TableTarget> find_table(const Arguments& arguments);

/// Asks DynamoDB about it. Exit 1 when it does not answer or has no such table.
OrExit<dynamo::TableDescription> describe_table(const TableTarget& target, std::string& region);

}  // namespace sluice::cli
