#include "host/stores/sqlite/schema.hpp"

#include <string>
#include <string_view>

namespace sluice::queue::sqlite {

namespace {

// The tables of a store's file, as they are made in a new one. Ids that we make begin with their time, so that those
// which come and go together lie together in their index.
constexpr const char* kTables = R"sql(
-- A message lies in sluice_messages and is, from then on, written only when an operator edits it or it changes halves: so
-- a claim, an extension or a retry costs the same for a large body as for a small one. Where it stands is told by two
-- small tables: it has either an entry in sluice_ready (in a range of its own for each priority that is not the normal
-- one, and for those whose next delivery is a suspect), or a row in sluice_deliveries with "until" set. A message without
-- a row there has never been touched: version 1, no delivery. "half" is twice the queue's id, plus one for the DLQ.
CREATE TABLE sluice_queues (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  kept INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE sluice_halves (
  half INTEGER PRIMARY KEY,
  messages INTEGER NOT NULL
) STRICT;
CREATE TABLE sluice_messages (
  seq INTEGER PRIMARY KEY,
  half INTEGER NOT NULL,
  sent_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  id TEXT NOT NULL,
  content_type TEXT,
  message_group TEXT,
  attributes BLOB,
  body BLOB NOT NULL,
  priority INTEGER,
  native BLOB
) STRICT;
CREATE UNIQUE INDEX sluice_ids ON sluice_messages (id, half / 2);
CREATE TABLE sluice_ready (
  half INTEGER NOT NULL,
  sent_at INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (half, sent_at, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE sluice_deliveries (
  seq INTEGER PRIMARY KEY,
  half INTEGER NOT NULL,
  until INTEGER,
  leased INTEGER NOT NULL,
  version INTEGER NOT NULL,
  receives INTEGER NOT NULL,
  sent_at INTEGER NOT NULL,
  received_at INTEGER,
  updated_at INTEGER NOT NULL,
  failure BLOB,
  marks INTEGER NOT NULL DEFAULT 0,
  checkpoint BLOB
) STRICT;
CREATE INDEX sluice_deliveries_due ON sluice_deliveries (half, until, leased) WHERE until IS NOT NULL;
CREATE TABLE sluice_counters (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  next_seq INTEGER NOT NULL
) STRICT;
INSERT INTO sluice_counters VALUES (1, 1);
-- What hosts and operators tell each other, beside the messages.
CREATE TABLE sluice_notices (
  topic INTEGER NOT NULL,
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  posted_at INTEGER NOT NULL,
  text BLOB NOT NULL,
  PRIMARY KEY (topic, key)
) STRICT, WITHOUT ROWID;
-- Order within groups. "kept" of sluice_queues says what is kept of a queue's order, as group_order.hpp has it: 0 where
-- nobody asked for it. Where an order is kept, one message of each group (or of the queue) lies in sluice_ready, at the
-- time when its group got its turn; the others that could be claimed lie in sluice_waiting. sluice_groups has a row while
-- a message of the group is there to be claimed or something holds it. sluice_holds are dead letters whose group waits
-- for an operator.
CREATE TABLE sluice_groups (
  number INTEGER PRIMARY KEY,
  id INTEGER NOT NULL UNIQUE,
  half INTEGER NOT NULL,
  head INTEGER,
  head_sent INTEGER NOT NULL,
  turn INTEGER NOT NULL,
  others INTEGER NOT NULL,
  last_sent INTEGER NOT NULL
) STRICT;
CREATE TABLE sluice_waiting (
  group_number INTEGER NOT NULL,
  sent_at INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  suspected INTEGER NOT NULL,
  PRIMARY KEY (group_number, sent_at, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE sluice_holds (
  seq INTEGER PRIMARY KEY,
  half INTEGER NOT NULL,
  group_id INTEGER NOT NULL,
  sent_at INTEGER NOT NULL
) STRICT;
-- What has been sent lately, and what must not be sent twice. "until" and "last" are on a clock of the file's own, which
-- never goes back; it is "ahead" of the machine's by as much as that has been set back so far.
CREATE TABLE sluice_dedup_ids (
  queue INTEGER NOT NULL,
  key BLOB NOT NULL,
  until INTEGER NOT NULL,
  id TEXT NOT NULL,
  PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX sluice_dedup_ids_until ON sluice_dedup_ids (until);
CREATE TABLE sluice_unique_keys (
  queue INTEGER NOT NULL,
  key BLOB NOT NULL,
  until_done INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX sluice_unique_keys_seq ON sluice_unique_keys (seq);
CREATE TABLE sluice_send_clock (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  last INTEGER NOT NULL,
  ahead INTEGER NOT NULL
) STRICT;
INSERT INTO sluice_send_clock VALUES (1, 0, 0);
-- Idempotency keys: marks of those in progress, and records of those that are done. An owner who is the key itself is
-- NULL. With defaults, as INSERT OR REPLACE otherwise copies each page that it touches, to be able to undo half a
-- statement.
CREATE TABLE sluice_key_jobs (
  id INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  job TEXT NOT NULL,
  UNIQUE (queue, job)
) STRICT;
CREATE TABLE sluice_keys (
  job INTEGER NOT NULL DEFAULT 0,
  key BLOB NOT NULL DEFAULT x'',
  done INTEGER NOT NULL DEFAULT 0,
  until INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  owner TEXT,
  result BLOB,
  PRIMARY KEY (job, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX sluice_keys_until ON sluice_keys (until);
)sql";

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
  if (version != kSchemaVersion) {
    return Found::newer;
  }
  // The version grows with releases; files of builds before the first one may lack what came last.
  const char* const last = "SELECT count(*) FROM pragma_table_info('sluice_deliveries') WHERE name = 'checkpoint'";
  return connection.number(last) == 1 ? Found::ours : Found::older;
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
    connection.execute(kTables);
    connection.execute(("PRAGMA application_id = " + std::to_string(kApplicationId)).c_str());
    connection.execute(("PRAGMA user_version = " + std::to_string(kSchemaVersion)).c_str());
  }
  connection.execute("COMMIT");
}

}  // namespace

Result<void> check_schema(Connection& connection, SchemaUse use) {
  const Found found = look(connection);
  SLUICE_PASS_ON(connection.state());
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
