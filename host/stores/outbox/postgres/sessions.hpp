#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/postgres/connection.hpp"
#include "host/stores/outbox/postgres/table_sql.hpp"

/// The three kinds of sessions, each on a connection of its own that is set up for it.
namespace sluice::queue::outbox::postgres {

/// Names and values of PostgreSQL's own settings.
using ServerSettings = std::vector<std::pair<std::string, std::string>>;

class PostgresLocks final : public LockSession {
 public:
  static Result<std::unique_ptr<LockSession>> open(const Settings& settings, const TableSql& sql, Deadline deadline);

  Result<Members> join(const LockSpace& space, Deadline deadline) override;
  Result<Members> beat(Deadline deadline) override;
  Result<std::vector<std::uint32_t>> lock(std::span<const std::uint32_t> buckets, Deadline deadline) override;
  Result<void> unlock(std::span<const std::uint32_t> buckets, Deadline deadline) override;
  Result<std::vector<MarkStatus>> mark(std::span<const Mark> marks, Deadline deadline) override;

 private:
  PostgresLocks(std::unique_ptr<Connection> connection, const TableSql& sql)
      : connection_(std::move(connection)), sql_(sql) {}

  /// Takes the member's lock where the session is fresh; false where it is not this member's alone.
  Result<bool> enter(Deadline deadline);

  const std::unique_ptr<Connection> connection_;
  const TableSql& sql_;
  std::int32_t space_ = 0;
  std::uint32_t buckets_ = 0;
  std::int64_t process_ = 0;  ///< the server's, whose locks these are
};

class PostgresReader final : public ReadSession {
 public:
  static Result<std::unique_ptr<ReadSession>> open(const Settings& settings, const TableSql& sql, bool listen,
                                                   Deadline deadline);

  Result<SourceId> source_id(Deadline deadline) override;
  Result<Page> fetch(const FetchRequest& request, Deadline deadline) override;
  Result<std::vector<GroupRows>> fetch_groups(std::span<const Group> groups, std::size_t limit,
                                              const FetchRequest& request, Deadline deadline) override;
  Result<News> wait(int wake, Deadline deadline) override;

 private:
  PostgresReader(std::unique_ptr<Connection> connection, const TableSql& sql, bool indexed)
      : connection_(std::move(connection)), sql_(sql), indexed_(indexed) {}

  const std::unique_ptr<Connection> connection_;
  const TableSql& sql_;
  const bool indexed_;  ///< an index leads to a group's rows
};

class PostgresAdmin final : public AdminSession {
 public:
  static Result<std::unique_ptr<AdminSession>> open(const Settings& settings, const TableSql& sql, Deadline deadline);

  Result<std::vector<Finding>> inspect(Deadline deadline) override;
  Result<SourceId> source_id(Deadline deadline) override;
  Result<StoredRow> get(const RowKey& key, Deadline deadline) override;
  Result<std::vector<StoredRow>> list(const ListRows& request, Deadline deadline) override;
  Result<TableCounts> count(const CountRequest& request, Deadline deadline) override;
  Result<std::vector<RowChanged>> change(std::span<const RowChange> changes, Deadline deadline) override;
  Result<std::uint64_t> prune(const PruneRequest& request, Deadline deadline) override;

 private:
  PostgresAdmin(std::unique_ptr<Connection> connection, const TableSql& sql, ConnectSettings settings)
      : connection_(std::move(connection)), sql_(sql), settings_(std::move(settings)) {}

  std::string stored_columns(bool payload) const;
  StoredRow stored_row(const Answer& answer, int row) const;
  Result<void> count_details(TableCounts& counts, Deadline deadline);
  Statement statement_of(const RowChange& change) const;

  const std::unique_ptr<Connection> connection_;
  const TableSql& sql_;
  const ConnectSettings settings_;
};

/// Whether requests of one connection are dealt out to several sessions, by a pool in between.
Result<bool> sessions_are_shared(Connection& connection, const ConnectSettings& settings, Deadline deadline);
/// What is to be said of that.
Error shared_sessions(ErrorCode code);

/// What is wrong with the table, and with its side table where there is to be one, for PostgresAdmin::inspect.
Result<std::vector<Finding>> inspect_table(Connection& connection, const TableSql& sql, bool side_table,
                                           Deadline deadline);

/// The id of the cluster, which its physical standbys share, and in it those of the database and the table. Nothing is
/// written.
Result<SourceId> source_id_of(Connection& connection, const TableSql& sql, Deadline deadline);

/// The SQL that makes what the settings describe.
std::string ddl_of(const Settings& settings);

/// A connection as sessions need it: UTC, no statement or lock for ever; `more` are further settings of PostgreSQL.
/// With coordination = "table" they are given with every request, for a pool's connections are everybody's.
Result<std::unique_ptr<Connection>> open_session(const Settings& settings, const ServerSettings& more,
                                                 Deadline deadline);

}  // namespace sluice::queue::outbox::postgres
