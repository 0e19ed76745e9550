#include "host/stores/sqlite/connection.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/mutex.hpp"
#include "base/text/percent.hpp"
#include "host/stores/sqlite/sqlite_error.hpp"
#include "host/stores/sqlite/store_thread.hpp"

namespace sluice::queue::sqlite {

namespace {

// Between two looks at another process's lock. SQLite's own busy timeout grows to 100 ms, with which a busy host would
// keep a second one waiting for seconds.
constexpr Duration kFirstLook = std::chrono::microseconds(200);
constexpr Duration kLongestLook = std::chrono::milliseconds(4);
// Virtual machine steps between two looks at the deadline: well under a millisecond.
constexpr int kProgressSteps = 10'000;

int flags_of(Connection::Access access) {
  switch (access) {
    case Connection::Access::create:
      return SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    case Connection::Access::write:
      return SQLITE_OPEN_READWRITE;
    case Connection::Access::read:
      return SQLITE_OPEN_READONLY;
    default:
      return SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
  }
}

}  // namespace

Connection::~Connection() {
  if (handle_ != nullptr) {
    sqlite3_close_v2(handle_);
  }
}

Result<void> Connection::open(Access access) {
  const int flags = flags_of(access) | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_PRIVATECACHE;
  const std::string name =
      access == Access::read_alone ? "file://" + percent_encoded(path_, "/") + "?immutable=1" : path_;
  const int code = sqlite3_open_v2(name.c_str(), &handle_, flags, nullptr);
  if (code != SQLITE_OK) {
    fail_with(code);
    return failure();
  }
  sqlite3_busy_handler(handle_, &Connection::on_busy, this);
  // In place of SQLite's own, which would checkpoint within a commit.
  sqlite3_wal_hook(handle_, &Connection::on_commit, this);
  // A damaged or hostile file must not reach further than its own bytes.
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  // Debian's SQLite has both.
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  return {};
}

void Connection::execute(const char* sql) {
  if (failed()) {
    return;
  }
  errno = 0;
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
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

void Connection::fail_with(int code) {
  const int last_errno = errno;
  const std::string text = handle_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle_);
  // SQLite keeps the errno of a failed open, but not that of a failed commit.
  const int kept_errno = handle_ == nullptr ? 0 : sqlite3_system_errno(handle_);
  // A schema that cannot be read is damaged to SQLite, and only the last errno tells why.
  const bool damaged = (code & 0xFF) == SQLITE_CORRUPT;
  const int system_errno = kept_errno != 0 && !damaged ? kept_errno : last_errno;
  if ((code & 0xFF) == SQLITE_BUSY && lock_limit_ != SteadyTime::min()) {
    fail(Error(ErrorCode::timeout, "the deadline passed while another process held the lock on store \"" + path_ +
                                       "\"; try again, or see who has it open with: fuser FILE"));
    return;
  }
  fail(explain(code, system_errno, text, path_));
}

void Connection::interrupt_when(std::function<bool()> passed) {
  passed_ = std::move(passed);
  sqlite3_progress_handler(handle_, kProgressSteps, passed_ ? &Connection::on_progress : nullptr, this);
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
  ++connection.commits_;
  return SQLITE_OK;
}

Connection::Written Connection::checkpoint() {
  int log_pages = -1;
  int pages = -1;
  errno = 0;
  const int code = sqlite3_wal_checkpoint_v2(handle_, "main", SQLITE_CHECKPOINT_PASSIVE, &log_pages, &pages);
  if (code == SQLITE_OK) {
    return {log_pages, pages};
  }
  if ((code & 0xFF) != SQLITE_BUSY) {
    fail_with(code);
  }
  return {};
}

void Connection::empty_log() {
  sqlite3_wal_checkpoint_v2(handle_, "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
}

std::int64_t Connection::changes() const { return sqlite3_changes64(handle_); }
std::int64_t Connection::last_row() const { return sqlite3_last_insert_rowid(handle_); }
bool Connection::in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }
bool Connection::read_only() const { return sqlite3_db_readonly(handle_, "main") == 1; }

Statement::Statement(Connection& connection, const char* sql) : connection_(connection) {
  if (connection_.failed()) {
    return;
  }
  errno = 0;
  const int code = sqlite3_prepare_v3(connection_.handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &handle_, nullptr);
  if (code != SQLITE_OK) {
    connection_.fail_with(code);
  }
}

Statement::~Statement() { sqlite3_finalize(handle_); }

bool Statement::row() {
  if (connection_.failed()) {
    return false;
  }
  errno = 0;
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) {
    return true;
  }
  if (code != SQLITE_DONE) {
    connection_.fail_with(code);
  }
  return false;
}

std::int64_t Statement::run() {
  while (row()) {
  }
  const std::int64_t touched = connection_.failed() ? 0 : connection_.changes();
  reset();
  return touched;
}

std::optional<std::int64_t> Statement::only() {
  const auto value = row() ? optional_integer(0) : std::nullopt;
  reset();
  return value;
}

void Statement::reset() {
  // The code that it returns is that of the last step, which `row` has reported.
  sqlite3_reset(handle_);
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }
bool Statement::is_null(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }

std::string_view Statement::bytes(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle_, column));
  return bytes == nullptr ? std::string_view()
                          : std::string_view(bytes, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)));
}

std::optional<std::int64_t> Statement::optional_integer(int column) const {
  return is_null(column) ? std::nullopt : std::optional<std::int64_t>(integer(column));
}

void Statement::bind_one(int index, std::int64_t value) { sqlite3_bind_int64(handle_, index, value); }

void Statement::bind_one(int index, std::string_view text) {
  const char* data = text.data() == nullptr ? "" : text.data();
  if (sqlite3_bind_text64(handle_, index, data, text.size(), SQLITE_STATIC, SQLITE_UTF8) != SQLITE_OK) {
    connection_.fail_with(SQLITE_TOOBIG);
  }
}

void Statement::bind_one(int index, const Blob& blob) {
  const char* data = blob.bytes.data() == nullptr ? "" : blob.bytes.data();
  if (sqlite3_bind_blob64(handle_, index, data, blob.bytes.size(), SQLITE_STATIC) != SQLITE_OK) {
    connection_.fail_with(SQLITE_TOOBIG);
  }
}

void Statement::bind_one(int index, const std::optional<std::int64_t>& value) {
  if (value) {
    bind_one(index, *value);
  } else {
    sqlite3_bind_null(handle_, index);
  }
}

void Statement::bind_one(int index, const std::optional<std::string_view>& text) {
  if (text) {
    bind_one(index, *text);
  } else {
    sqlite3_bind_null(handle_, index);
  }
}

void Statement::bind_one(int index, const std::optional<Blob>& blob) {
  if (blob) {
    bind_one(index, *blob);
  } else {
    sqlite3_bind_null(handle_, index);
  }
}

}  // namespace sluice::queue::sqlite
