#pragma once

#include <optional>
#include <string>

#include "base/text/json_writer.hpp"
#include "dynamo/client.hpp"
#include "host/cli/arguments.hpp"
#include "host/cli/exit.hpp"
#include "host/cli/queue_place.hpp"
#include "host/runtime/dynamodb_connection.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "host/stores/dynamomq/outside_items.hpp"
#include "host/stores/leased/table_items.hpp"

namespace sluice::cli {

/// The table that a `table` command is about, and where it is. A value.
struct TableTarget {
  QueuePlace place;
  queue::dynamodb::TableSpec spec;
  runtime::DynamoDbConnection::Options connection;
};

/// The options of a `table` command: those that say where the table is, and its layout.
std::vector<Flag> with_table_flags(std::vector<Flag> own);

/// "with index INDEX", where its layout has one; empty text otherwise.
std::string with_index(const TableTarget& target);

/// Its name, layout and index, as members of a report.
void write_table(JsonWriter& json, const TableTarget& target);

/// As QueuePlace::find. Exit 78 when the queue is one of SQLite's.
OrExit<TableTarget> find_table(const Arguments& arguments);

/// Asks DynamoDB about it. Exit 1 when it does not answer or has no such table.
OrExit<dynamo::TableDescription> describe_table(const TableTarget& target, std::string& region);

/// What is not right about its TTL; nothing: it is on, or nobody can be asked.
std::optional<queue::table::TableFinding> look_at_ttl(const TableTarget& target);

/// The same of a leased table: what lies in it, and what is odd about it.
Result<queue::leased::TableItems> look_at_leased_items(const TableTarget& target, std::size_t most_requests);

/// Looks for items that no queue shows. Fails as the look itself does.
Result<queue::dynamomq::OutsideItems> look_at_items(const TableTarget& target, std::size_t most_requests);

}  // namespace sluice::cli
