#pragma once

#include <memory>
#include <string>

#include "dynamo/client.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/runtime/host_queues.hpp"
#include "host/stores/dynamodb/table.hpp"

namespace sluice::cli {

/// The table that a `table` command is about, and where it is. A value.
struct TableTarget {
  QueuePlace place;
  queue::dynamodb::TableSpec spec;
  runtime::DynamoDbConnection::Options connection;

  /// " with index INDEX", where its layout has one.
  std::string with_index() const { return spec.layout.indexed ? " with index " + spec.index : std::string(); }
};

/// The options of a `table` command: those that say where the table is, and its layout.
std::vector<Flag> with_table_flags(std::vector<Flag> own);
/// As QueuePlace::find. Exit 78 when the queue is one of SQLite's.
OrExit<TableTarget> find_table(const Arguments& arguments);
/// Its name, layout and index, as members of a report.
void put_table(JsonWriter& json, const TableTarget& target);

/// A connection to where a table is, for one command. A resource that can be moved.
class TableSession {
 public:
  /// Exit 1 or 78 when it cannot be made. `target` outlives it.
  static OrExit<TableSession> open(const TableTarget& target);

  dynamo::Client& client() { return parts_->connection->client(); }
  const std::string& region() const { return parts_->connection->region(); }
  const SystemClock& clock() const { return parts_->clock; }
  /// For one request: half a minute from now.
  Deadline deadline() const { return Deadline::after(clock(), std::chrono::seconds(30)); }
  /// Asks DynamoDB about the table. Exit 1 when it does not answer or has no such table.
  OrExit<dynamo::TableDescription> describe();

 private:
  struct Parts {
    SystemClock clock;
    SeededRandom random;
    std::unique_ptr<runtime::DynamoDbConnection> connection;
  };
  explicit TableSession(const TableTarget& target) : target_(&target), parts_(std::make_unique<Parts>()) {}

  const TableTarget* target_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice::cli
