#pragma once

#include <atomic>
#include <initializer_list>
#include <unordered_set>
#include <utility>

#include "base/mutex.hpp"
#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "host/stores/outbox/database.hpp"

namespace sluice::queue::outbox {

/// A value of an answer, as text; nothing: NULL.
using Cell = std::optional<std::string>;
using Cells = std::vector<Cell>;

std::int64_t number_of(const Cell& cell);  ///< 0 for NULL
bool flag_of(const Cell& cell);            ///< false for NULL
std::string text_of(Cell&& cell);          ///< empty for NULL
/// Of microseconds; zero for NULL. Times that ours do not reach, such as the year 9999 for "never", end at kEndOfTime.
Duration span_of(const Cell& cell);

/// What a statement gave back.
struct Answer {
  std::vector<Cells> rows;
  std::uint64_t touched = 0;  ///< by an INSERT, UPDATE or DELETE
};

/// Takes a row as it arrives; false: enough.
using TakeRow = std::function<bool(Cells&& row)>;

/// One session with a server. Not thread-safe. Every call blocks and has returned by its deadline. After an error whose
/// code is `unavailable`, `timeout` or `unknown_outcome` it has closed the connection, and each further call fails.
class SqlConnection : public Resource {
 public:
  virtual Result<Answer> run(const std::string& statement, Deadline deadline) = 0;
  /// Row by row. True: `take` has seen all of them.
  virtual Result<bool> stream(const std::string& statement, const TakeRow& take, Deadline deadline) = 0;
  /// All of them in one transaction; one answer each. Where it is not known whether it was committed,
  /// ErrorCode::unknown_outcome.
  virtual Result<std::vector<Answer>> run_together(std::span<const std::string> statements, Deadline deadline) = 0;
  /// What the server has notified of since the last call.
  virtual Result<std::vector<std::string>> notifications() { return std::vector<std::string>(); }
  /// Readable when there may be notifications; -1: the server sends none.
  virtual int descriptor() const { return -1; }
  /// What the session was called when it was let in: by the server, or by a pool in between.
  virtual std::int64_t greeted_as() const { return 0; }
  /// The server can pass over rows that somebody else has locked.
  virtual bool skips_locked() const { return true; }
};

/// Runs a SELECT and locks its rows; with `skip`, those apart that somebody else has locked where the server knows how.
Result<Answer> lock_rows(SqlConnection& connection, const std::string& select, bool skip, Deadline deadline);
/// Runs `work` in a transaction, which is rolled back when it fails; anew, up to four times in all, where a deadlock or
/// a lock of somebody else's has ended it.
Result<void> in_transaction(SqlConnection& connection, const std::function<Result<void>()>& work, Deadline deadline);

/// How a server spells what the others spell otherwise: patterns in which SqlTable's words stand, and @1, @2 for what
/// is given. A value.
struct SqlDialect {
  char quote;                             ///< of names
  std::string (*text)(std::string_view);  ///< a text, whatever is in it
  /// An id that is a text, as it is compared with the column, whatever its type; with `hex` one of bytes.
  std::string (*text_id)(std::string_view, bool hex);
  const char* hex_text;  ///< a column of bytes as a text
  const char* id_order;  ///< the text of an id so that it is ordered by its bytes
  /// Rows that are ordered by a place and then by a text are all sorted, those that an index has in the order of their
  /// places and that LIMIT leaves out as well.
  bool sorts_all;
  /// A text as it is compared with a column that `exact` has been applied to.
  std::string (*exact_text)(std::string_view);
  /// What a pair of exact texts is looked for in: what stands between the brackets of IN (...).
  std::string (*groups)(std::span<const Group>);
  const char* now;
  const char* later;          ///< @2 microseconds after @1
  const char* micros;         ///< from @1 to @2
  const char* as_text;        ///< a column as it goes out
  const char* exact;          ///< a column so that only the same bytes are equal; NULL is empty
  const char* resource;       ///< what an ARN or RN ends with, after its fifth colon; another exact type as it is
  const char* bucket;         ///< @1: that of a row without a group
  const char* text_bucket;    ///< of the text @1
  const char* payload_bytes;  ///< where rows come without payloads that are large; 0: they come with them
  const char* fitted;         ///< a reason @1, cut to what its column holds where the server refuses what is longer
  const char* schema;         ///< the name of the schema where the settings name none
  const char* of_table;       ///< what is the table's in the server's catalogue
  const char* column_types;   ///< selects the names of the table's columns, and their types
  const char* space;          ///< the name of a lock space, @1
  const char* insert_new;     ///< @1 into @SIDE, but for rows whose keys are there
  const char* prune;          ///< deletes rows for which @1 holds, at most @2
  const char* notice;         ///< tells sources of @1; empty: the server cannot
  const char* id_type;        ///< of the id, and of one that is a text
  const char* text_id_type;
  const char* order_type;    ///< order_by, if it is none of the others
  const char* created_type;  ///< of further columns, where they are named: created_at
  const char* reason_type;   ///< last_error
  const char* time_type;     ///< retry_at, sent_at, failed_at
  const char* add_column;    ///< @1 of the type @2, where it is not there
  const char* attribute_type;
  const char* table_end;     ///< of the table's DDL, behind its columns
  const char* in_use_note;   ///< before the DDL of what a table in use may lack: how it is run
  const char* in_use_index;  ///< an index that `table_end` brings, for a table in use
  /// What is made beside both: indexes that may be called @1 and @2, with the word @3.
  const char* helper_ddl;
  const char* concurrently;  ///< @3 for a table that is in use
  const char* space_type;    ///< of the column of `space` in @SIDE
  const char* side_end;      ///< of the DDL of @SIDE
};

/// Where the user and the password end, of "user:password@host:port/database?..."; npos: there are none. They may hold
/// a '/' or an '@' that nobody has written as %2F or %40, and a '?' before any '/'.
std::size_t end_of_user(std::string_view url);

/// "1,2,3"
template <typename Range>
std::string list_of(const Range& numbers) {
  return joined(mapped(numbers, [](auto number) { return std::to_string(number); }), ",");
}
std::string micros_of(Duration span);

using RowKeys = std::unordered_set<RowKey, RowKeyHash>;

/// A row as it was read.
struct ReadRow {
  Row row;
  std::size_t bytes = 0;  ///< of its payload
  bool left_out = false;  ///< the payload is to be read by itself
};

/// The SQL of one outbox table in one dialect. Immutable. `dialect` outlives it.
///
/// Statements are patterns with words for what the settings name: @TABLE, @ID, @SENT_AT and so on for columns, @TRIES
/// (retry_count, NULL is 0), @DEAD, @WAITS (retry_at lies ahead), @UNSENT, @SIDE (the table of leases), @NOW,
/// @TABLE_TEXT and @ID_NAME (names as texts), @OF_TABLE.
class SqlTable {
 public:
  /// `types`: of the columns that there are, as far as they are known.
  SqlTable(const config::OutboxConfig& settings, const SqlDialect& dialect,
           const std::map<std::string, std::string>& types = {});

  const config::OutboxConfig& settings() const { return settings_; }
  const SqlDialect& dialect() const { return dialect_; }
  /// The pattern with its words, and with `values` for @1, @2 and so on.
  std::string sql(std::string_view pattern, std::initializer_list<std::string> values = {}) const;
  /// A name in quotes, which are doubled within.
  std::string name(std::string_view name) const;

  /// What the column of ids is compared with.
  std::string id(const RowKey& key) const;
  std::string id(const RowEdit& edit) const { return id(edit.key); }
  /// "17,18"
  template <typename Rows>
  std::string ids(const Rows& rows) const {
    return joined(mapped(rows, [this](const auto& row) { return this->id(row); }), ",");
  }
  /// Of what @ID_CELL has given back.
  RowKey key(Cell&& cell) const;
  /// The condition for rows that come after that one, or before it.
  std::string beyond(const RowKey& key, bool before = false) const;
  /// "... ORDER BY" that
  std::string order(bool newest_first = false) const;
  std::string from_now(Duration span) const;

  /// Of a row that is to be handed out; the payload of one that waits or is dead is left away.
  std::string row_columns() const;
  ReadRow read(Cells&& cells) const;
  /// Of a row for an operator.
  std::string stored_columns(bool payload) const;
  StoredRow read_stored(Cells&& cells) const;

  /// The condition for rows of a page, those that follow it among them.
  std::string page(const FetchRequest& request) const;
  /// The condition for rows to be published or, with `dead`, that were not sent, as the filter wants them.
  std::string wanted(const FetchRequest& request) const;
  /// The condition that one of these jobs takes a row.
  std::string taken_by(std::span<const Selection> jobs) const;

  /// What stands in the brackets of @ID IN (...) for these marks.
  using RowsOfMarks = std::function<std::string(std::span<const RowEdit>)>;
  /// Two UPDATEs at most, for each failed row has a wait and a reason of its own: of those that were sent, and of those
  /// that failed.
  std::vector<std::string> updates(std::vector<RowEdit> marks, const RowsOfMarks& rows) const;
  /// An edit of one row.
  std::string statement_of(const RowEdit& edit) const;
  /// Selects the ids of rows that may be marked: the column, or @ID_CELL.
  std::string markable(std::span<const RowEdit> marks, const char* wanted_id = "@ID_CELL") const;

 private:
  friend class SqlServer;  // reads groups by groups_by_index
  /// What stands in the brackets of @GROUP IN (...): it finds rows of these groups by an index, and of others that the
  /// column's collation takes for equal.
  std::string groups_by_index(std::span<const Group> groups) const;

  struct Assignment {
    std::string column;
    std::string value;
  };
  std::vector<Assignment> assignments(const RowEdit& edit) const;
  /// One UPDATE for edits that assign to the same columns.
  std::string update(std::span<const RowEdit> edits, const std::string& which) const;
  std::string columns(const std::string& payload) const;
  /// What its lists ask of a row; empty: nothing.
  std::string chosen_by(const Selection& filter) const;
  void read_common(Cells& cells, Row& row) const;

  const config::OutboxConfig settings_;
  const SqlDialect& dialect_;
  bool order_is_time_ = false;
  bool id_is_bytes_ = false;
  bool group_is_bytes_ = false;
  std::map<std::string, std::string, std::less<>> words_;
};

/// In whose name marks are written, where locks are leases.
struct MarkFence {
  std::string heartbeat;  ///< a statement of the same transaction; where it touches no row, nothing is written
  std::string condition;  ///< " AND ..." for a statement that writes nothing once the name is gone
};

/// The types that columns may have, as a server's catalogue calls them, and what to call them for a person.
struct ColumnTypes {
  struct Kind {
    std::vector<std::string> types;
    const char* expected;
  };
  Kind id, text_id, text, payload, time, count, reason;
};

/// A statement that reads the first rows of groups.
struct GroupStatement {
  std::string text;      ///< empty: there are none
  std::size_t rows = 0;  ///< that it was made for, where they are known: what it does not find has gone since
};

/// An outbox table of one kind of server, which does some things in its own way. Connects when a session is opened.
class SqlServer : public Database {
 public:
  /// `clock` and `random` outlive it.
  SqlServer(Settings settings, const SqlDialect& dialect, const ColumnTypes& types, const Clock& clock, Random& random)
      : settings_(std::move(settings)), types_(types), clock_(clock), random_(random) {
    tables_.push_back(std::make_unique<SqlTable>(settings_.config, dialect));
    table_ = tables_.back().get();
  }

  Result<std::unique_ptr<LockSession>> open_locks(Deadline deadline) final;
  Result<std::unique_ptr<ReadSession>> open_reader(Deadline deadline) final;
  Result<std::unique_ptr<AdminSession>> open_admin(Deadline deadline) final;
  std::string ddl(bool in_use) const final;

  const Settings& settings() const { return settings_; }
  /// With the columns that it has, once a session was opened.
  const SqlTable& table() const { return *table_; }

  enum class Use : std::uint8_t { locks, rows, operators };
  virtual Result<std::unique_ptr<SqlConnection>> connect(Use use, Deadline deadline) = 0;
  /// Locks of the session itself.
  virtual std::unique_ptr<LockSession> locks_on(std::unique_ptr<SqlConnection> connection) = 0;
  /// For `limit` rows of each of these groups for which `wanted` holds.
  virtual Result<GroupStatement> group_statement(SqlConnection& connection, std::span<const Group> groups,
                                                 std::size_t limit, const std::string& wanted, Deadline deadline);
  /// Writes those marks whose rows nobody else has locked, in one transaction; their ids. `fence` may be null; where
  /// its name is gone nothing is written.
  virtual Result<RowKeys> write(SqlConnection& connection, std::span<const RowEdit> marks, const MarkFence* fence,
                                Deadline deadline) = 0;
  /// A connection for rows that was made last hears of new ones.
  virtual bool tells_of_rows() const = 0;
  virtual Result<SourceId> source_id(SqlConnection& connection, Deadline deadline) = 0;
  /// Which session has the lock of a bucket: its number, its client's address and name; a number that is NULL, or no
  /// row: none.
  virtual Result<Answer> holder_of(SqlConnection& connection, const LockSpace& space, std::uint32_t bucket,
                                   Deadline deadline) = 0;
  virtual Result<std::vector<Finding>> inspect(SqlConnection& connection, Deadline deadline) = 0;

  /// The types of the table's columns, by name; empty: there is no table, or none that the user may see.
  Result<std::map<std::string, std::string>> columns(SqlConnection& connection, Deadline deadline) const;
  Result<Answer> ask(SqlConnection& connection, Deadline deadline, std::string_view pattern,
                     std::initializer_list<std::string> values = {}) const {
    return connection.run(table().sql(pattern, values), deadline);
  }

 protected:
  const Clock& clock() const { return clock_; }

 private:
  Result<std::unique_ptr<SqlConnection>> open(Use use, Deadline deadline);

  const Settings settings_;
  const ColumnTypes& types_;
  const Clock& clock_;
  Random& random_;

  Mutex mutex_;
  /// As the settings have it, and as it turned out to be: sessions may have either.
  std::vector<std::unique_ptr<const SqlTable>> tables_ SLUICE_GUARDED_BY(mutex_);
  std::atomic<const SqlTable*> table_ = nullptr;
};

/// Writes marks as LockSession::mark says. `fence` may be null.
Result<std::vector<MarkStatus>> write_marks(SqlServer& server, SqlConnection& connection,
                                            std::span<const RowEdit> marks, const MarkFence* fence, Deadline deadline);

/// What an inspection finds out about one table, in words.
class Inspection {
 public:
  /// `table`: what it is called in findings.
  Inspection(const SqlTable& sql, std::string table) : sql_(sql), table_(std::move(table)) {}

  void fatal(ErrorCode code, std::string text) { findings_.push_back({true, code, std::move(text)}); }
  void remark(std::string text) { findings_.push_back({false, ErrorCode::invalid, std::move(text)}); }
  const std::string& table() const { return table_; }
  bool any_fatal() const {
    return std::any_of(findings_.begin(), findings_.end(), [](const Finding& finding) { return finding.fatal; });
  }

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

}  // namespace sluice::queue::outbox
