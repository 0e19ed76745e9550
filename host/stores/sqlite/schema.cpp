#include "host/stores/sqlite/schema.hpp"

#include <string>
#include <string_view>

#include "host/stores/sqlite/schema_tables.hpp"

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
  if (application == kEarlierApplicationId) {
    return Found::older;
  }
  if (application != kApplicationId) {
    return Found::foreign;
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
  const std::string store = "store \"" + connection.path() + "\" ";
  if (found == Found::newer) {
    return {ErrorCode::invalid, store + "has schema version " +
                                    std::to_string(connection.number("PRAGMA user_version")) + ", this sluice knows " +
                                    std::to_string(kSchemaVersion) + "; use the sluice that made it, or another file"};
  }
  return {ErrorCode::invalid, store +
                                  "was made before the first release; carry its messages over with 'sluice export' "
                                  "of the sluice that made it and 'sluice import' of this one, or name another "
                                  "file as the store"};
}

void make_tables(Connection& connection) {
  for (const char* const tables : {kTables, kNotices, kOrdering, kSending, kKeys}) {
    connection.execute(tables);
  }
}

/// Fails where something that was made before our tables has a name like theirs.
void keep_names_free(Connection& connection) {
  Statement taken(connection, "SELECT name FROM sqlite_schema WHERE name LIKE ?1 ESCAPE '!' LIMIT 1");
  if (taken.bind(std::string_view("sluice!_%")).row()) {
    const std::string name(taken.bytes(0));
    connection.fail(
        Error(ErrorCode::invalid,
              "store \"" + connection.path() + "\" has a table \"" + name + "\", and names that begin with " +
                  std::string(kOurs) +
                  " are ours; if it is one of yours, give it another name with the sqlite3 tool: ALTER TABLE " + name +
                  " RENAME TO my_" + name));
  }
}

void bring_up(Connection& connection) {
  connection.execute("BEGIN IMMEDIATE");
  // Another process may have been quicker.
  if (!connection.failed() && look_inside(connection) == Found::empty) {
    keep_names_free(connection);
    make_tables(connection);
    connection.execute(("PRAGMA application_id = " + std::to_string(kApplicationId)).c_str());
    connection.execute(("PRAGMA user_version = " + std::to_string(kSchemaVersion)).c_str());
  }
  connection.execute("COMMIT");
}

}  // namespace

Result<void> check_schema(Connection& connection, SchemaUse use) {
  const Found found = look(connection);
  if (connection.failed()) {
    return connection.failure();
  }
  if (use == SchemaUse::read && found == Found::empty) {
    return Error(ErrorCode::denied, "store \"" + connection.path() +
                                        "\" is new, and this user cannot write it; open it once as one who can");
  }
  return found == Found::ours || found == Found::empty ? Result<void>() : refusal(found, connection);
}

Result<void> make_schema(Connection& connection) {
  if (look(connection) == Found::empty) {
    bring_up(connection);
  }
  return check_schema(connection);
}

}  // namespace sluice::queue::sqlite
