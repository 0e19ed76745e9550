#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace sluice::queue::sqlite {

/// SQLite's own objects, as resources.
struct HandleEnd {
  void operator()(sqlite3* connection) const;
  void operator()(sqlite3_stmt* statement) const;
};
using ConnectionHandle = std::unique_ptr<sqlite3, HandleEnd>;
using StatementHandle = std::unique_ptr<sqlite3_stmt, HandleEnd>;
/// Prepares it for many runs. What is left of the text is behind `rest`, which may be null. SQLite's code.
int prepare(sqlite3* connection, std::string_view sql, StatementHandle& statement, const char** rest = nullptr);

/// Bytes that are stored as a BLOB; a plain string_view is stored as TEXT.
struct Blob {
  std::string_view bytes;
};

/// One SQLite connection. A resource; used by one thread at a time.
///
/// Its first failure sticks: every later statement does nothing until `clear()`. So a transaction is written straight
/// down, and looked at once before it is committed.
class Connection : boost::noncopyable {
 public:
  explicit Connection(std::string path) : path_(std::move(path)) {}

  enum class Access {
    write,       ///< reads and writes
    read,        ///< reads beside others who write
    read_alone,  ///< reads a file that nobody writes, and touches nothing beside it
  };
  Result<void> open(Access access);

  /// Runs SQL that returns nothing of interest.
  void execute(const char* sql);
  /// The first column of the first row as a number; 0 for no row.
  std::int64_t number(const char* sql);
  /// The same as text.
  std::string text(const char* sql);

  bool failed() const { return failure_.has_value(); }
  /// Its failure, if it has failed.
  Result<void> state() const { return failure_ ? Result<void>(*failure_) : Result<void>(); }
  void clear() { failure_.reset(); }
  void fail(Error error);

  /// Until when a statement waits for another process's lock, by the machine's monotonic clock. Waiting longer fails
  /// with ErrorCode::timeout.
  void wait_for_locks_until(SteadyTime limit) { lock_limit_ = limit; }
  /// Waits a little, the longer the more tries there were; false when that time has come.
  bool wait_for_lock(int tries) { return on_busy(this, tries) != 0; }
  /// Asked now and then while a statement runs; true ends it with ErrorCode::timeout. Empty: never asked.
  void interrupt_when(std::function<bool()> passed);

  /// Pages in the write-ahead log after the last commit of this connection.
  std::int64_t log_pages() const { return log_pages_; }
  /// Of the log after a checkpoint: its pages, and how many of them lie at their places. Negative: somebody else is at
  /// it.
  struct Written {
    std::int64_t log_pages = -1;
    std::int64_t pages = -1;
  };
  /// Writes pages from the log to their places in the file, as far as can be done without waiting for anybody. The
  /// connection does not fail by it: what is committed lies safe in the log.
  Result<Written> checkpoint();
  /// Empties the log once all of it is written, where nobody reads from it.
  void empty_log();

  /// Rows that the last INSERT, UPDATE or DELETE touched.
  std::int64_t changes() const;
  /// The key of the row that the last INSERT made.
  std::int64_t last_row() const;
  bool in_transaction() const;
  bool read_only() const;
  const std::string& path() const { return path_; }

 private:
  friend class Statement;
  friend class UserStatements;
  static int on_busy(void* self, int tries);
  static int on_progress(void* self);
  static int on_commit(void* self, sqlite3* handle, const char* schema, int pages);
  void fail_with(int code) { fail(error_of(code)); }
  Error error_of(int code) const;

  const std::string path_;
  ConnectionHandle handle_;
  std::optional<Error> failure_;
  SteadyTime lock_limit_ = SteadyTime::min();
  std::int64_t log_pages_ = 0;
  std::function<bool()> passed_;
};

/// A prepared statement, kept for many runs. Belongs to one Connection, which must outlive it.
///
///     Statement find(connection, "SELECT seq, id FROM sluice_messages WHERE half = ?1");
///     find.bind(half).each([&] { use(find.integer(0), find.bytes(1)); });
class Statement {
 public:
  Statement(Connection& connection, std::string_view sql);

  /// Binds ?1, ?2, ... Text and blobs are borrowed until the next reset.
  template <typename... Values>
  Statement& bind(const Values&... values) {
    int index = 0;
    (bind_one(++index, values), ...);
    return *this;
  }
  /// Steps; true: there is a row. False: at the end, or the connection has failed.
  bool row();
  /// Runs to the end and resets; returns the rows it touched, 0 when it failed.
  std::int64_t run();
  /// The first column of the only row, and resets; nothing: there is none, or it is NULL.
  std::optional<std::int64_t> only();
  /// What `read` makes of the only row, and resets; nothing: there is none.
  template <typename Read>
  auto only(Read read) {
    auto made = row() ? std::optional(read()) : std::nullopt;
    reset();
    return made;
  }
  /// Does it at every row, and resets.
  template <typename Visit>
  void each(Visit visit) {
    while (row()) {
      visit();
    }
    reset();
  }
  void reset();

  std::int64_t integer(int column) const;
  bool is_null(int column) const;
  /// Valid until the next step or reset.
  std::string_view bytes(int column) const;
  std::optional<std::int64_t> optional_integer(int column) const;

 private:
  void bind_one(int index, std::int64_t value);
  void bind_one(int index, std::string_view text);
  void bind_one(int index, const Blob& blob);
  void bind_one(int index, std::nullopt_t);
  template <typename Value>
  void bind_one(int index, const std::optional<Value>& value) {
    if (value) {
      bind_one(index, *value);
    } else {
      bind_one(index, std::nullopt);
    }
  }

  Connection& connection_;
  StatementHandle handle_;
};

/// What a failed SQLite call means to a user: the code to branch on and one line with the mend.
/// `code` is SQLite's extended result code, `system_errno` the errno it keeps (0: none), `text` its own message.
Error explain(int code, int system_errno, const std::string& text, const std::string& path);
/// The same of a system call of our own.
Error explain_system(int system_errno, const std::string& path);

}  // namespace sluice::queue::sqlite
