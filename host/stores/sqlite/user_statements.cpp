#include "host/stores/sqlite/user_statements.hpp"

#include <sqlite3.h>

#include <boost/core/noncopyable.hpp>
#include <cerrno>
#include <limits>
#include <string>
#include <variant>

#include "base/guard.hpp"
#include "base/text/lower_case.hpp"
#include "host/stores/sqlite/schema.hpp"
#include "host/stores/sqlite/store_thread.hpp"

namespace sluice::queue::sqlite {

namespace {

// SQLite's own tables.
constexpr std::string_view kReserved = "sqlite_";
// Tells of every page of the file, and reads it whole for that.
constexpr std::string_view kPages = "dbstat";
constexpr const char* kMore =
    "it does more than SELECT, INSERT, UPDATE or DELETE; make tables and indexes beforehand, with the sqlite3 tool";

std::string_view text_of(const char* text) { return text == nullptr ? std::string_view() : text; }

/// How SQLite asks when it opens a table that a module makes (json_each, FTS5), and FTS5 when it looks whether others
/// have written. A statement that says the same itself changes nothing: SQLite lets nobody write its own tables.
bool opens_virtual_table(int action, std::string_view first, std::string_view second) {
  const bool schema = first == "sqlite_master" || first == "sqlite_temp_master";
  return (action == SQLITE_UPDATE && schema) || (action == SQLITE_READ && schema && second == "ROWID") ||
         (action == SQLITE_PRAGMA && first == "data_version");
}

// Statements that are kept prepared: a host's handlers have a handful each. Beyond, all are prepared anew.
constexpr std::size_t kKept = 64;
constexpr std::size_t kLongestStatement = std::size_t{64} * 1024;
// Steps of SQLite's machine between two looks at the clock: some microseconds, and no more calls of functions than
// that.
constexpr int kStepsBetweenLooks = 100;
// A value, or a row: as much as the effects of a message have.
constexpr int kMostValueBytes = static_cast<int>(kMostEffectBytes);
constexpr std::int64_t kMostMemory = std::int64_t{64} * 1024 * 1024;
// What a statement writes beyond what the cache holds goes to the log, which keeps that size.
constexpr int kMostSpilledPages = 16'384;
// What LIKE and GLOB take is the product of text and pattern.
constexpr int kMostPatternBytes = 250;

/// Of the file or the machine, not of the statement.
bool is_of_the_file(int code) {
  switch (code & 0xFF) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PROTOCOL:
    case SQLITE_BUSY:
      return true;
    default:
      return false;
  }
}

struct Binder {
  sqlite3_stmt* handle;
  int index;

  int operator()(std::monostate) const { return sqlite3_bind_null(handle, index); }
  int operator()(std::int64_t value) const { return sqlite3_bind_int64(handle, index, value); }
  int operator()(double value) const { return sqlite3_bind_double(handle, index, value); }
  int operator()(const std::string& text) const {
    return sqlite3_bind_text64(handle, index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  int operator()(const SqlBlob& blob) const {
    return sqlite3_bind_blob64(handle, index, blob.bytes.data(), blob.bytes.size(), SQLITE_STATIC);
  }
};

/// While it lives, what SQLite prepares and runs is a handler's, and has a handler's bounds. SQLite knows one of memory
/// for all of the process only: what others take meanwhile is little beside it.
class Judged : boost::noncopyable {
 public:
  Judged(UserTables& tables, sqlite3* connection)
      : tables_(tables),
        connection_(connection),
        length_(sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, kMostValueBytes)) {
    tables_.begin();
    sqlite3_hard_heap_limit64(sqlite3_memory_used() + kMostMemory);
  }
  ~Judged() {
    sqlite3_hard_heap_limit64(0);
    tables_.end();
    sqlite3_limit(connection_, SQLITE_LIMIT_LENGTH, length_);
  }

 private:
  UserTables& tables_;
  sqlite3* const connection_;
  const int length_;
};

/// What is to be done about it, by SQLite's own words: it has one code for all of these.
std::string mend_of(std::string_view words) {
  if (words.starts_with("no such table") || words.starts_with("no such column")) {
    return "; make it in the store's own file, or mend the name";
  }
  return "; mend the statement";
}

}  // namespace

bool UserTables::allows_table(std::string_view table, bool writes) {
  if (table_.empty() || (writes && !written_)) {
    table_ = table;
    written_ = writes;
  }
  const std::string name = lower_case(table);
  const bool reserved = name.compare(0, kReserved.size(), kReserved) == 0;
  if (reserved && writes) {
    // How SQLite asks about CREATE and DROP.
    refusal_ = kMore;
    return false;
  }
  if (reserved || name == kPages || name.compare(0, kOurs.size(), kOurs) == 0) {
    refusal_ = "it uses table " + std::string(table) +
               ", which is not yours: messages are sent as effects, and tables of your own need other names";
    return false;
  }
  return true;
}

// What reaches beyond the file: these load code, or take a number for a pointer to it.
bool UserTables::allows_function(std::string_view function) {
  const std::string name = lower_case(function);
  if (name == "load_extension" || name == "fts3_tokenizer") {
    refusal_ = "it calls " + std::string(function) + ", which is not for handlers";
    return false;
  }
  return true;
}

bool UserTables::allows(int action, const char* first, const char* second) {
  if (!judging_ || opens_virtual_table(action, text_of(first), text_of(second))) {
    return true;
  }
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
      return true;
    case SQLITE_FUNCTION:
      return allows_function(text_of(second));
    case SQLITE_READ:
      return allows_table(text_of(first), false);
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
      return allows_table(text_of(first), true);
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
      refusal_ = "it begins or ends a transaction; the transaction is the message's own";
      return false;
    default:
      refusal_ = kMore;
      return false;
  }
}

int BoundedFunctions::take_place(sqlite3* connection, int most_value_bytes) {
  sqlite3* opened = nullptr;
  int code = sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  originals_.reset(opened);
  if (code == SQLITE_OK) {
    sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, most_value_bytes);
  }
  for (Function& function : functions_) {
    if (code == SQLITE_OK) {
      code = sqlite::prepare(opened, function.sql, function.original);
    }
    if (code == SQLITE_OK) {
      code = sqlite3_create_function_v2(connection, function.name, function.arguments,
                                        SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, &function,
                                        &BoundedFunctions::call, nullptr, nullptr, nullptr);
    }
  }
  return code;
}

void BoundedFunctions::call(sqlite3_context* context, int count, sqlite3_value** values) {
  const Function& function = *static_cast<const Function*>(sqlite3_user_data(context));
  const int first = sqlite3_value_bytes(values[0]);
  const int second = sqlite3_value_bytes(values[1]);
  if (static_cast<double>(first) * second > function.most) {
    const std::string why = std::string(function.name) + "() of " + std::to_string(first) + " and " +
                            std::to_string(second) + " bytes would take too long";
    sqlite3_result_error(context, why.c_str(), -1);
    return;
  }
  for (int i = 0; i < count; ++i) {
    sqlite3_bind_value(function.original.get(), i + 1, values[i]);
  }
  const int code = sqlite3_step(function.original.get());
  if (code == SQLITE_ROW) {
    sqlite3_result_value(context, sqlite3_column_value(function.original.get(), 0));
  } else {
    sqlite3_result_error(context, sqlite3_errmsg(sqlite3_db_handle(function.original.get())), -1);
    sqlite3_result_error_code(context, code);
  }
  sqlite3_reset(function.original.get());
  sqlite3_clear_bindings(function.original.get());
}

int UserStatements::on_authorize(void* self, int action, const char* first, const char* second, const char* /*schema*/,
                                 const char* /*trigger*/) {
  UserTables& tables = static_cast<UserStatements*>(self)->tables_;
  if (!tables.allows(action, first, second) && SLUICE_GUARD(effects_tables_apart)) {
    return SQLITE_DENY;
  }
  // With this a table is deleted row by row, which can be ended; in one piece it cannot.
  return action == SQLITE_DELETE && tables.judges() ? SQLITE_IGNORE : SQLITE_OK;
}

int UserStatements::on_progress(void* self) {
  auto& statements = *static_cast<UserStatements*>(self);
  const int spilled = statements.spilled_pages();
  statements.wrote_too_much_ = spilled - statements.spilled_before_.value_or(spilled) > kMostSpilledPages;
  statements.spilled_before_ = statements.spilled_before_.value_or(spilled);
  return statements.wrote_too_much_ || machine_now() >= statements.until_ ? 1 : 0;
}

int UserStatements::spilled_pages() const {
  int pages = 0;
  int highest = 0;
  sqlite3_db_status(connection_.handle_.get(), SQLITE_DBSTATUS_CACHE_SPILL, &pages, &highest, 0);
  return pages;
}

bool UserStatements::get_ready() {
  if (!ready_ && !connection_.failed()) {
    // Once and for good: SQLite prepares every statement anew after these.
    sqlite3_set_authorizer(connection_.handle_.get(), &UserStatements::on_authorize, this);
    sqlite3_limit(connection_.handle_.get(), SQLITE_LIMIT_LIKE_PATTERN_LENGTH, kMostPatternBytes);
    if (const int code = functions_.take_place(connection_.handle_.get(), kMostValueBytes); code != SQLITE_OK) {
      connection_.fail_with(code);
      return false;
    }
    ready_ = true;
  }
  return ready_ && !connection_.failed();
}

std::optional<UserStatements::Refusal> UserStatements::run(const SqlWrite& write, SteadyTime until) {
  until_ = until;
  Prepared* prepared = nullptr;
  if (!get_ready()) {
    return std::nullopt;
  }
  if (auto refused = prepare(write.statement, prepared)) {
    return refused;
  }
  if (prepared->reads && !write.rows) {
    return Refusal{prepared->table,
                   "it only reads; say how many rows it has to return, so that it is a check, or leave it out"};
  }
  if (auto refused = bind(write, *prepared)) {
    return refused;
  }
  auto refused = step(write, *prepared);
  sqlite3_reset(prepared->handle.get());
  sqlite3_clear_bindings(prepared->handle.get());
  return refused;
}

std::optional<UserStatements::Refusal> UserStatements::prepare(const std::string& text, Prepared*& prepared) {
  auto found = kept_.find(text);
  if (found == kept_.end()) {
    Prepared compiled;
    if (auto refused = compile(text, compiled)) {
      return refused;
    }
    if (kept_.size() == kKept) {
      kept_.clear();
    }
    found = kept_.emplace(text, std::move(compiled)).first;
  }
  prepared = &found->second;
  return std::nullopt;
}

std::optional<UserStatements::Refusal> UserStatements::compile(std::string_view text, Prepared& prepared) {
  if (text.size() > kLongestStatement) {
    return Refusal{{},
                   "it has " + std::to_string(text.size()) + " bytes, and at most " +
                       std::to_string(kLongestStatement) + " are taken; give values as parameters"};
  }
  // SQLite takes it for the end of the text, however long that is said to be, and never comes to the end itself.
  if (text.find('\0') != std::string_view::npos) {
    return Refusal{{}, "it has a zero byte; give values as parameters"};
  }
  const Judged judged(tables_, connection_.handle_.get());
  const char* rest = text.data();
  const char* const end = text.data() + text.size();
  while (rest != end) {
    StatementHandle handle;
    const int code = sqlite::prepare(connection_.handle_.get(), {rest, end}, handle, &rest);
    if (prepared.handle != nullptr && (code != SQLITE_OK || handle != nullptr)) {
      return Refusal{prepared.table, "it is more than one statement; stage each as a write of its own"};
    }
    if (code != SQLITE_OK) {
      return explain_failure(prepared, code);
    }
    if (handle != nullptr) {
      prepared.handle = std::move(handle);
      prepared.table = tables_.table();
    }
  }
  if (prepared.handle == nullptr) {
    return Refusal{{}, "it is empty; give it a statement"};
  }
  if (sqlite3_stmt_isexplain(prepared.handle.get()) != 0) {
    return Refusal{{}, "it is an EXPLAIN; stage the statement itself"};
  }
  prepared.reads = sqlite3_stmt_readonly(prepared.handle.get()) != 0;
  return std::nullopt;
}

std::optional<UserStatements::Refusal> UserStatements::bind(const SqlWrite& write, const Prepared& prepared) {
  const int wanted = sqlite3_bind_parameter_count(prepared.handle.get());
  if (static_cast<std::size_t>(wanted) != write.parameters.size()) {
    return Refusal{prepared.table, "it takes " + std::to_string(wanted) + " parameters and was given " +
                                       std::to_string(write.parameters.size()) + "; give one for each ?"};
  }
  for (int i = 0; i < wanted; ++i) {
    const int code = std::visit(Binder{prepared.handle.get(), i + 1}, write.parameters[static_cast<std::size_t>(i)]);
    if (code != SQLITE_OK) {
      sqlite3_clear_bindings(prepared.handle.get());
      return Refusal{prepared.table,
                     "its parameter " + std::to_string(i + 1) + " is too large: " + sqlite3_errstr(code)};
    }
  }
  return std::nullopt;
}

std::optional<UserStatements::Refusal> UserStatements::step(const SqlWrite& write, Prepared& prepared) {
  const Judged judged(tables_, connection_.handle_.get());
  spilled_before_.reset();
  sqlite3_progress_handler(connection_.handle_.get(), kStepsBetweenLooks, &UserStatements::on_progress, this);
  const std::int64_t most = prepared.reads ? *write.rows : std::numeric_limits<std::int64_t>::max();
  std::int64_t rows = 0;
  errno = 0;
  int code = sqlite3_step(prepared.handle.get());
  while (code == SQLITE_ROW && ++rows <= most) {
    code = sqlite3_step(prepared.handle.get());
  }
  sqlite3_progress_handler(connection_.handle_.get(), 0, nullptr, nullptr);
  if (code != SQLITE_DONE && code != SQLITE_ROW) {
    return explain_failure(prepared, code);
  }
  if (!prepared.reads) {
    rows = connection_.changes();
  }
  if (!write.rows || rows == *write.rows || !SLUICE_GUARD(effects_rows_counted)) {
    return std::nullopt;
  }
  const std::string found = code == SQLITE_ROW ? "more than " + std::to_string(*write.rows) : std::to_string(rows);
  return Refusal{prepared.table,
                 prepared.reads ? "it returned " + found + " rows and had to return " + std::to_string(*write.rows)
                                : "it changed " + found + " rows and had to change " + std::to_string(*write.rows),
                 ErrorCode::conflict};
}

std::optional<UserStatements::Refusal> UserStatements::explain_failure(const Prepared& prepared, int code) {
  const std::string& table = prepared.table.empty() ? tables_.table() : prepared.table;
  if (is_of_the_file(code)) {
    connection_.fail_with(code);
    return std::nullopt;
  }
  if (!tables_.refusal().empty()) {
    return Refusal{table, tables_.refusal()};
  }
  switch (code & 0xFF) {
    case SQLITE_INTERRUPT:
      return Refusal{table, wrote_too_much_
                                ? "it writes more than a statement may, " + std::to_string(kMostSpilledPages / 256) +
                                      " MiB or so; spread the work over several messages"
                                : "it ran longer than the statements of a message may, " +
                                      std::to_string(kLongest.count() / 1'000'000) +
                                      " ms together, for which every other commit waits; give the table an index for "
                                      "it, or make it touch less"};
    case SQLITE_TOOBIG:
      return Refusal{table, "it makes or reads a value of more than " + std::to_string(kMostValueBytes) +
                                " bytes; keep large values elsewhere and write where they lie"};
    case SQLITE_NOMEM:
      return Refusal{table, "it takes more memory than a statement may, " + std::to_string(kMostMemory / 1024 / 1024) +
                                " MiB, or than there is; make it touch less"};
    case SQLITE_CONSTRAINT:
      return Refusal{table, std::string("it breaks a constraint: ") + sqlite3_errmsg(connection_.handle_.get()),
                     ErrorCode::conflict};
    default:
      return Refusal{table, std::string("it failed: ") + sqlite3_errmsg(connection_.handle_.get()) +
                                mend_of(sqlite3_errmsg(connection_.handle_.get()))};
  }
}

}  // namespace sluice::queue::sqlite
