#include "host/stores/sqlite/connection.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/mutex.hpp"
#include "base/text/percent.hpp"
#include "host/stores/sqlite/schema.hpp"
#include "host/stores/sqlite/store_thread.hpp"

namespace sluice::queue::sqlite {

namespace {

std::string quoted(const std::string& path) { return "store \"" + path + "\""; }

std::string reason(int system_errno, const std::string& text) {
  return system_errno == 0 ? text : std::system_category().message(system_errno);
}

bool no_room(int system_errno) { return system_errno == ENOSPC || system_errno == EDQUOT || system_errno == EFBIG; }

constexpr const char* kMoreDescriptors = "; raise the limit on open files (ulimit -n)";
bool no_descriptors(int system_errno) { return system_errno == EMFILE || system_errno == ENFILE; }

Error full(const std::string& path) {
  return {ErrorCode::full, "no room left for " + quoted(path) +
                               ": the disk is full, or the file has reached its size limit; free some space, nothing "
                               "that was accepted is lost"};
}

Error cannot_read_or_write(int system_errno, const std::string& text, const std::string& path) {
  if (no_room(system_errno)) {
    return full(path);
  }
  return {ErrorCode::unavailable,
          "cannot read or write " + quoted(path) + ": " + reason(system_errno, text) +
              (no_descriptors(system_errno) ? kMoreDescriptors : "; look at the disk and its log")};
}

Error cannot_open(int system_errno, const std::string& text, const std::string& path) {
  if (no_room(system_errno) || system_errno == EIO) {
    return cannot_read_or_write(system_errno, text, path);
  }
  const bool denied = system_errno == EACCES || system_errno == EPERM || system_errno == EROFS;
  if (system_errno == EISDIR) {
    return {ErrorCode::invalid, "cannot open " + quoted(path) + ": it is a folder; name a file"};
  }
  if (system_errno == ENOENT) {
    return {ErrorCode::queue_missing,
            "cannot open " + quoted(path) + ": it is not there; put it back, or restart for a new one"};
  }
  return {denied ? ErrorCode::denied : ErrorCode::unavailable,
          "cannot open " + quoted(path) + " or the files beside it: " + reason(system_errno, text) +
              (no_descriptors(system_errno) ? kMoreDescriptors : "; let this user write the file and its folder")};
}

// Between two looks at another process's lock. SQLite's own busy timeout grows to 100 ms, with which a busy host would
// keep a second one waiting for seconds.
constexpr Duration kFirstLook = std::chrono::microseconds(200);
constexpr Duration kLongestLook = std::chrono::milliseconds(4);
// Virtual machine steps between two looks at the deadline: well under a millisecond.
constexpr int kProgressSteps = 10'000;

int flags_of(Connection::Access access) {
  switch (access) {
    case Connection::Access::write:
      return SQLITE_OPEN_READWRITE;
    case Connection::Access::read:
      return SQLITE_OPEN_READONLY;
    default:
      return SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
  }
}

}  // namespace

Error explain(int code, int system_errno, const std::string& text, const std::string& path) {
  switch (code & 0xFF) {
    case SQLITE_FULL:
      return full(path);
    case SQLITE_IOERR:
      return cannot_read_or_write(system_errno, text, path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      if (system_errno == EIO || system_errno == ENXIO) {
        return cannot_read_or_write(system_errno, text, path);
      }
      return {
          ErrorCode::corrupt,
          quoted(path) + " is damaged or not a SQLite file (" + text +
              "); move it away and restore a backup, or rescue what can be read, with no process using it: sqlite3 " +
              path + " '.clone NEW', then sqlite3 NEW 'PRAGMA application_id=" + std::to_string(kApplicationId) +
              "; PRAGMA user_version=" + std::to_string(kSchemaVersion) + "', and put NEW in its place"};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {ErrorCode::denied,
              quoted(path) + " cannot be written (" + text + "); let this user write the file and its folder"};
    case SQLITE_CANTOPEN:
      return cannot_open(system_errno, text, path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return {ErrorCode::unavailable, "another process holds the lock on " + quoted(path) +
                                          "; try again, or see who has it open with: fuser FILE"};
    case SQLITE_INTERRUPT:
      return {ErrorCode::timeout, "the deadline passed while reading " + quoted(path) + "; allow more time"};
    case SQLITE_TOOBIG:
      return {ErrorCode::invalid, "a value is too large for " + quoted(path) + "; send a smaller message"};
    case SQLITE_NOMEM:
      return {ErrorCode::unavailable,
              "out of memory while using " + quoted(path) + "; give the process more, or smaller claims"};
    default:
      return {ErrorCode::internal, quoted(path) + ": " + text + " (SQLite " + std::to_string(code) + ")"};
  }
}

Error explain_system(int system_errno, const std::string& path) { return cannot_read_or_write(system_errno, {}, path); }

void HandleEnd::operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
void HandleEnd::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

int prepare(sqlite3* connection, std::string_view sql, StatementHandle& statement, const char** rest) {
  sqlite3_stmt* prepared = nullptr;
  const int code = sqlite3_prepare_v3(connection, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                      &prepared, rest);
  statement.reset(prepared);
  return code;
}

Result<void> Connection::open(Access access) {
  const int flags = flags_of(access) | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_PRIVATECACHE;
  const std::string name =
      access == Access::read_alone ? "file://" + percent_encoded(path_, "/") + "?immutable=1" : path_;
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &opened, flags, nullptr);
  handle_.reset(opened);
  if (code != SQLITE_OK) {
    fail_with(code);
    return state();
  }
  sqlite3_busy_handler(handle_.get(), &Connection::on_busy, this);
  // In place of SQLite's own, which would checkpoint within a commit.
  sqlite3_wal_hook(handle_.get(), &Connection::on_commit, this);
  // A damaged or hostile file must not reach further than its own bytes.
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  // Debian's SQLite has both.
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0, nullptr);
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  return {};
}

void Connection::execute(const char* sql) {
  if (failed()) {
    return;
  }
  errno = 0;
  const int code = sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) {
    fail_with(code);
  }
}

std::int64_t Connection::number(const char* sql) {
  Statement statement(*this, sql);
  return statement.row() ? statement.integer(0) : 0;
}

std::string Connection::text(const char* sql) {
  Statement statement(*this, sql);
  return statement.row() ? std::string(statement.bytes(0)) : std::string();
}

void Connection::fail(Error error) {
  if (!failed()) {
    failure_ = std::move(error);
  }
}

Error Connection::error_of(int code) const {
  const int last_errno = errno;
  const std::string text = handle_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle_.get());
  // SQLite keeps the errno of a failed open, but not that of a failed commit.
  const int kept_errno = handle_ == nullptr ? 0 : sqlite3_system_errno(handle_.get());
  // A schema that cannot be read is damaged to SQLite, and only the last errno tells why.
  const bool damaged = (code & 0xFF) == SQLITE_CORRUPT;
  const int system_errno = kept_errno != 0 && !damaged ? kept_errno : last_errno;
  if ((code & 0xFF) == SQLITE_BUSY && lock_limit_ != SteadyTime::min()) {
    return {ErrorCode::timeout, "the deadline passed while another process held the lock on store \"" + path_ +
                                    "\"; try again, or see who has it open with: fuser FILE"};
  }
  return explain(code, system_errno, text, path_);
}

void Connection::interrupt_when(std::function<bool()> passed) {
  passed_ = std::move(passed);
  sqlite3_progress_handler(handle_.get(), kProgressSteps, passed_ ? &Connection::on_progress : nullptr, this);
}

int Connection::on_busy(void* self, int tries) {
  const auto& connection = *static_cast<const Connection*>(self);
  const SteadyTime now = machine_now();
  if (now >= connection.lock_limit_) {
    return 0;
  }
  const Duration look = std::min(kLongestLook, Duration(kFirstLook.count() << std::min(tries, 8)));
  // Another process cannot signal us; the only thing to wait for is the time of the next look.
  Mutex mutex;
  Condition never;
  const MutexLock lock(mutex);
  never.wait_until(mutex, std::min(connection.lock_limit_, now + look), [] { return false; });
  return 1;
}

int Connection::on_progress(void* self) {
  const auto& connection = *static_cast<const Connection*>(self);
  return connection.passed_ && connection.passed_() ? 1 : 0;
}

int Connection::on_commit(void* self, sqlite3* /*handle*/, const char* /*schema*/, int pages) {
  auto& connection = *static_cast<Connection*>(self);
  connection.log_pages_ = pages;
  return SQLITE_OK;
}

Result<Connection::Written> Connection::checkpoint() {
  int log_pages = -1;
  int pages = -1;
  errno = 0;
  const int code = sqlite3_wal_checkpoint_v2(handle_.get(), "main", SQLITE_CHECKPOINT_PASSIVE, &log_pages, &pages);
  if (code == SQLITE_OK || (code & 0xFF) == SQLITE_BUSY) {
    return code == SQLITE_OK ? Written{log_pages, pages} : Written();
  }
  return error_of(code);
}

void Connection::empty_log() {
  sqlite3_wal_checkpoint_v2(handle_.get(), "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
}

std::int64_t Connection::changes() const { return sqlite3_changes64(handle_.get()); }
std::int64_t Connection::last_row() const { return sqlite3_last_insert_rowid(handle_.get()); }
bool Connection::in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }
bool Connection::read_only() const { return sqlite3_db_readonly(handle_.get(), "main") == 1; }

Statement::Statement(Connection& connection, std::string_view sql) : connection_(connection) {
  if (connection_.failed()) {
    return;
  }
  errno = 0;
  if (const int code = prepare(connection_.handle_.get(), sql, handle_); code != SQLITE_OK) {
    connection_.fail_with(code);
  }
}

bool Statement::row() {
  if (connection_.failed()) {
    return false;
  }
  errno = 0;
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) {
    return true;
  }
  if (code != SQLITE_DONE) {
    connection_.fail_with(code);
  }
  return false;
}

std::int64_t Statement::run() {
  each([] {});
  return connection_.failed() ? 0 : connection_.changes();
}

std::optional<std::int64_t> Statement::only() {
  const auto value = row() ? optional_integer(0) : std::nullopt;
  reset();
  return value;
}

void Statement::reset() {
  // The code that it returns is that of the last step, which `row` has reported.
  sqlite3_reset(handle_.get());
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }
bool Statement::is_null(int column) const { return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL; }

std::string_view Statement::bytes(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle_.get(), column));
  return bytes == nullptr
             ? std::string_view()
             : std::string_view(bytes, static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column)));
}

std::optional<std::int64_t> Statement::optional_integer(int column) const {
  return is_null(column) ? std::nullopt : std::optional<std::int64_t>(integer(column));
}

void Statement::bind_one(int index, std::int64_t value) { sqlite3_bind_int64(handle_.get(), index, value); }

void Statement::bind_one(int index, std::string_view text) {
  const char* data = text.data() == nullptr ? "" : text.data();
  if (sqlite3_bind_text64(handle_.get(), index, data, text.size(), SQLITE_STATIC, SQLITE_UTF8) != SQLITE_OK) {
    connection_.fail_with(SQLITE_TOOBIG);
  }
}

void Statement::bind_one(int index, const Blob& blob) {
  const char* data = blob.bytes.data() == nullptr ? "" : blob.bytes.data();
  if (sqlite3_bind_blob64(handle_.get(), index, data, blob.bytes.size(), SQLITE_STATIC) != SQLITE_OK) {
    connection_.fail_with(SQLITE_TOOBIG);
  }
}

void Statement::bind_one(int index, std::nullopt_t) { sqlite3_bind_null(handle_.get(), index); }

}  // namespace sluice::queue::sqlite
