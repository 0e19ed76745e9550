#include "host/stores/sqlite/user_tables.hpp"

#include <sqlite3.h>

#include <cctype>

#include "host/stores/sqlite/schema.hpp"

namespace sluice::queue::sqlite {

namespace {

// SQLite's own tables.
constexpr std::string_view kReserved = "sqlite_";
// Tells of every page of the file, and reads it whole for that.
constexpr std::string_view kPages = "dbstat";
constexpr const char* kMore =
    "it does more than SELECT, INSERT, UPDATE or DELETE; make tables and indexes beforehand, with the sqlite3 tool";

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

std::string_view text_of(const char* text) { return text == nullptr ? std::string_view() : text; }

/// How SQLite asks when it opens a table that a module makes (json_each, FTS5), and FTS5 when it looks whether others
/// have written. A statement that says the same itself changes nothing: SQLite lets nobody write its own tables.
bool opens_virtual_table(int action, std::string_view first, std::string_view second) {
  const bool schema = first == "sqlite_master" || first == "sqlite_temp_master";
  return (action == SQLITE_UPDATE && schema) || (action == SQLITE_READ && schema && second == "ROWID") ||
         (action == SQLITE_PRAGMA && first == "data_version");
}

}  // namespace

bool UserTables::allows_table(std::string_view table, bool writes) {
  if (table_.empty() || (writes && !written_)) {
    table_ = table;
    written_ = writes;
  }
  const std::string name = lower(table);
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
  const std::string name = lower(function);
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
      refusal_ =
          "it does more than SELECT, INSERT, UPDATE or DELETE; make tables and indexes beforehand, with the sqlite3 "
          "tool";
      return false;
  }
}

}  // namespace sluice::queue::sqlite
