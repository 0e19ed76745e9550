#include "host/stores/sqlite/schema.hpp"

#include <string>

#include "host/stores/sqlite/schema_tables.hpp"
#include "host/stores/sqlite/upgrade.hpp"

namespace sluice::queue::sqlite {

namespace {

enum class Found { empty, ours, older, foreign, newer };

/// Of one state of the file: inside a transaction.
Found look_inside(Connection& connection) {
  const std::int64_t application = connection.number("PRAGMA application_id");
  const std::int64_t version = connection.number("PRAGMA user_version");
  // Tables may have been made in it before its first start. Another program's are hardly ever without one of the marks.
  if (application == 0 && version == 0) {
    return Found::empty;
  }
  if (application != kApplicationId) {
    return Found::foreign;
  }
  if (version >= 1 && version < kSchemaVersion) {
    return Found::older;
  }
  return version == kSchemaVersion ? Found::ours : Found::newer;
}

Found look(Connection& connection) {
  // Another process may be making the tables just now.
  connection.execute("BEGIN");
  const Found found = look_inside(connection);
  connection.execute("COMMIT");
  return found;
}

Error refusal(Found found, Connection& connection) {
  if (found == Found::foreign) {
    return {ErrorCode::invalid,
            "\"" + connection.path() + "\" is the SQLite file of another program; name another file as the store"};
  }
  return {ErrorCode::invalid, "store \"" + connection.path() + "\" has schema version " +
                                  std::to_string(connection.number("PRAGMA user_version")) + ", this sluice knows " +
                                  std::to_string(kSchemaVersion) + "; use the sluice that made it, or another file"};
}

void make_tables(Connection& connection) {
  connection.execute(kTables);
  connection.execute(kNotices);
  make_tables_since_5(connection);
}

/// Fails where a table that was made before ours has the name of one of them.
void keep_names_free(Connection& connection) {
  if (connection.number("SELECT count(*) FROM sqlite_schema") == 0) {
    return;
  }
  Connection ours(":memory:");
  if (auto opened = ours.open(Connection::Access::create); !opened) {
    connection.fail(opened.error());
    return;
  }
  make_tables(ours);
  Statement names(ours, "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'");
  while (names.row()) {
    connection.keep_free(std::string(names.bytes(0)).c_str());
  }
}

void bring_up(Connection& connection) {
  // Otherwise a table cannot be renamed beside a view of the user's that is broken.
  connection.execute("PRAGMA legacy_alter_table = ON; BEGIN IMMEDIATE");
  // Another process may have been quicker.
  const Found found = connection.failed() ? Found::ours : look_inside(connection);
  if (found == Found::older) {
    upgrade(connection, connection.number("PRAGMA user_version"));
  }
  if (found == Found::empty) {
    keep_names_free(connection);
    make_tables(connection);
    connection.execute(("PRAGMA application_id = " + std::to_string(kApplicationId)).c_str());
  }
  if (found == Found::older || found == Found::empty) {
    connection.execute(("PRAGMA user_version = " + std::to_string(kSchemaVersion)).c_str());
  }
  connection.execute("COMMIT; PRAGMA legacy_alter_table = OFF");
}

}  // namespace

Result<void> check_schema(Connection& connection, SchemaUse use) {
  const Found found = look(connection);
  if (connection.failed()) {
    return connection.failure();
  }
  if (use == SchemaUse::read && (found == Found::empty || found == Found::older)) {
    return Error(ErrorCode::denied, "store \"" + connection.path() +
                                        "\" is new or of an older sluice, and this user cannot write it; open it once "
                                        "as one who can");
  }
  if (found == Found::foreign || found == Found::newer) {
    return refusal(found, connection);
  }
  return {};
}

Result<void> make_schema(Connection& connection) {
  if (const Found found = look(connection); found == Found::empty || found == Found::older) {
    bring_up(connection);
  }
  return check_schema(connection);
}

}  // namespace sluice::queue::sqlite
