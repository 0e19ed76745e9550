#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "host/stores/sqlite/connection.hpp"

struct sqlite3_context;

namespace sluice::queue::sqlite {

/// Where the value of a column goes. A column that is not set is NULL.
class ColumnValue {
 public:
  explicit ColumnValue(sqlite3_context* context) : context_(context) {}

  // Text and blobs are borrowed until the statement that reads them has ended.

  void set(std::int64_t value);
  void set(std::string_view text);
  void set(const Blob& blob);
  template <typename Value>
  void set(const std::optional<Value>& value) {
    if (value) {
      set(*value);
    }
  }
  void set_copy(const Blob& blob);

 private:
  sqlite3_context* context_;
};

/// Rows in memory that statements of one connection read as a table, so that one statement puts down many of them:
/// `INSERT ... SELECT ... FROM name` costs half of what a statement for each row does.
///
/// Such statements say INSERT OR FAIL (or IGNORE): with the usual OR ABORT, SQLite would copy each page that they
/// touch, to be able to undo half a statement. Here a failure undoes the whole transaction.
class MemoryTable {
 public:
  /// `columns` as in CREATE TABLE, such as "hash, seq". Before any statement that names the table is prepared.
  MemoryTable(Connection& connection, const char* name, const char* columns);
  virtual ~MemoryTable() = default;
  MemoryTable(const MemoryTable&) = delete;
  MemoryTable& operator=(const MemoryTable&) = delete;

  virtual std::size_t rows() const = 0;
  virtual void column(std::size_t row, int column, ColumnValue value) const = 0;
  const char* columns() const { return columns_; }

 private:
  const char* const columns_;
};

}  // namespace sluice::queue::sqlite
