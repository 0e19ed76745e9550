#include "host/stores/sqlite/memory_table.hpp"

#include <sqlite3.h>

#include <new>
#include <string>

namespace sluice::queue::sqlite {

namespace {

// What SQLite hands back to the functions below, which it calls by the table that follows them.
struct Table : sqlite3_vtab {
  const MemoryTable* rows;
};

struct Cursor : sqlite3_vtab_cursor {
  const MemoryTable* rows;
  std::size_t row;
};

int connect(sqlite3* handle, void* rows, int /*argc*/, const char* const* /*argv*/, sqlite3_vtab** table,
            char** /*error*/) {
  const auto* memory = static_cast<const MemoryTable*>(rows);
  const int code = sqlite3_declare_vtab(handle, ("CREATE TABLE x (" + std::string(memory->columns()) + ")").c_str());
  if (code != SQLITE_OK) {
    return code;
  }
  *table = new (std::nothrow) Table{{}, memory};
  return *table == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete static_cast<Table*>(table);
  return SQLITE_OK;
}

int plan(sqlite3_vtab* /*table*/, sqlite3_index_info* info) {
  // All of it, in its own order; SQLite itself looks for what a WHERE asks.
  info->estimatedCost = 1;
  return SQLITE_OK;
}

int open(sqlite3_vtab* table, sqlite3_vtab_cursor** cursor) {
  *cursor = new (std::nothrow) Cursor{{}, static_cast<const Table*>(table)->rows, 0};
  return *cursor == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

int close(sqlite3_vtab_cursor* cursor) {
  delete static_cast<Cursor*>(cursor);
  return SQLITE_OK;
}

int rewind(sqlite3_vtab_cursor* cursor, int /*plan*/, const char* /*plan*/, int /*argc*/, sqlite3_value** /*argv*/) {
  static_cast<Cursor*>(cursor)->row = 0;
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* cursor) {
  ++static_cast<Cursor*>(cursor)->row;
  return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor* cursor) {
  const auto* at = static_cast<const Cursor*>(cursor);
  return at->row >= at->rows->rows() ? 1 : 0;
}

int column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int number) {
  const auto* at = static_cast<const Cursor*>(cursor);
  at->rows->column(at->row, number, ColumnValue(context));
  return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor* cursor, sqlite3_int64* id) {
  *id = static_cast<sqlite3_int64>(static_cast<const Cursor*>(cursor)->row);
  return SQLITE_OK;
}

/// Without xCreate: the table is there under its name, and cannot be made in a file.
constexpr sqlite3_module make_module() {
  sqlite3_module module{};
  module.xConnect = connect;
  module.xDisconnect = disconnect;
  module.xBestIndex = plan;
  module.xOpen = open;
  module.xClose = close;
  module.xFilter = rewind;
  module.xNext = next;
  module.xEof = at_end;
  module.xColumn = column;
  module.xRowid = row_id;
  return module;
}

constexpr sqlite3_module kModule = make_module();

}  // namespace

void ColumnValue::set(std::int64_t value) { sqlite3_result_int64(context_, value); }

void ColumnValue::set(std::string_view text) {
  const char* data = text.data() == nullptr ? "" : text.data();
  sqlite3_result_text64(context_, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void ColumnValue::set(const Blob& blob) {
  const char* data = blob.bytes.data() == nullptr ? "" : blob.bytes.data();
  sqlite3_result_blob64(context_, data, blob.bytes.size(), SQLITE_STATIC);
}

void ColumnValue::set_copy(const Blob& blob) {
  sqlite3_result_blob64(context_, blob.bytes.data(), blob.bytes.size(), SQLITE_TRANSIENT);
}

MemoryTable::MemoryTable(Connection& connection, const char* name, const char* columns) : columns_(columns) {
  connection.add_table(name, kModule, *this);
}

}  // namespace sluice::queue::sqlite
