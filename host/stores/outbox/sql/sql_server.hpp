#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/sql/sql_connection.hpp"
#include "host/stores/outbox/sql/sql_table.hpp"

namespace sluice::queue::outbox::sql {

/// In whose name marks are written, where locks are leases.
struct MarkFence {
  std::string heartbeat;  ///< a statement of the same transaction; where it touches no row, nothing is written
  std::string condition;  ///< " AND ..." for a statement that writes nothing once the name is gone
};

/// What one kind of server does in its own way, for one outbox table. Thread-safe; outlives its sessions.
class SqlServer {
 public:
  SqlServer(Settings settings, const SqlDialect& dialect)
      : settings_(std::move(settings)), table_(settings_.table, dialect) {}
  SqlServer(const SqlServer&) = delete;
  SqlServer& operator=(const SqlServer&) = delete;
  virtual ~SqlServer() = default;

  const Settings& settings() const { return settings_; }
  const SqlTable& table() const { return table_; }

  enum class Use : std::uint8_t { locks, leases, rows, rows_and_news, operators };
  virtual Result<std::unique_ptr<SqlConnection>> connect(Use use, Deadline deadline) = 0;
  /// Locks of the session itself.
  virtual std::unique_ptr<LockSession> locks_on(std::unique_ptr<SqlConnection> connection) = 0;
  /// The statement that reads rows of these groups, `limit` of each, for which `wanted` holds; empty: there are none.
  virtual Result<std::string> group_statement(SqlConnection& connection, std::span<const Group> groups,
                                              std::size_t limit, const std::string& wanted, Deadline deadline) = 0;
  /// Writes those marks whose rows nobody else has locked, in one transaction; their ids. `fence` may be null; where
  /// its name is gone nothing is written.
  virtual Result<std::unordered_set<std::int64_t>> write(SqlConnection& connection, std::span<const Mark> marks,
                                                         const MarkFence* fence, Deadline deadline) = 0;
  virtual Result<SourceId> source_id(SqlConnection& connection, Deadline deadline) = 0;
  virtual Result<std::vector<Finding>> inspect(SqlConnection& connection, Deadline deadline) = 0;
  virtual std::string ddl() const = 0;

 protected:
  Result<Answer> ask(SqlConnection& connection, Deadline deadline, std::string_view pattern,
                     std::initializer_list<std::string> values = {}) const {
    return connection.run(table_.sql(pattern, values), deadline);
  }

 private:
  const Settings settings_;
  const SqlTable table_;
};

/// Writes marks as LockSession::mark says. `fence` may be null.
Result<std::vector<MarkStatus>> write_marks(SqlServer& server, SqlConnection& connection, std::span<const Mark> marks,
                                            const MarkFence* fence, Deadline deadline);

/// The types that columns may have, as a server's catalogue calls them, and what to call them for a person.
struct ColumnTypes {
  struct Kind {
    std::vector<std::string> types;
    const char* expected;
  };
  Kind id, text, payload, time, count, reason;
};

/// What an inspection finds out about one table, in words.
class Inspection {
 public:
  /// `table`: what it is called in findings.
  Inspection(const SqlTable& sql, std::string table) : sql_(sql), table_(std::move(table)) {}

  void fatal(ErrorCode code, std::string text) { findings_.push_back({true, code, std::move(text)}); }
  void remark(std::string text) { findings_.push_back({false, ErrorCode::invalid, std::move(text)}); }
  const std::string& table() const { return table_; }
  bool empty() const { return findings_.empty(); }

  /// Compares the columns that there are, by name, with those that the settings name.
  void columns(const std::map<std::string, std::string>& types, const ColumnTypes& expected);
  /// `unique`: some index says so of ids alone; `counted`: the server makes their values, `how` says by what.
  void identity(bool unique, bool counted, const char* how);
  /// Fatal ones first.
  std::vector<Finding> findings() &&;

 private:
  void column(const char* key, const std::string& name, const ColumnTypes::Kind& kind,
              const std::map<std::string, std::string>& types);

  const SqlTable& sql_;
  const std::string table_;
  std::vector<Finding> findings_;
};

/// An outbox table of that server. `clock` and `random` outlive it.
std::unique_ptr<Database> make_sql_database(std::unique_ptr<SqlServer> server, const Clock& clock, Random& random);

}  // namespace sluice::queue::outbox::sql
