#include "host/stores/sqlite/schema.hpp"

#include <string>

#include "host/stores/sqlite/old_keys.hpp"

namespace sluice::queue::sqlite {

namespace {

// A message lies in `messages` and is, from then on, written only when an operator edits it or it changes halves: so a
// claim, an extension or a retry costs the same for a large body as for a small one. Where it stands is told by two
// small tables: it has either an entry in `ready` (or in `suspects`, when its next delivery is one), or a row in
// `deliveries` with `until` set. A message without a row in `deliveries` has never been touched: version 1, no
// delivery. `half` is twice the queue's id, plus one for the DLQ.
//
// Deleting from an index over random ids would write one page for each message. So entries of `ids_new` and `ids` stay
// when their message goes, and are swept in order of their hash later; an entry counts only as long as `messages` has
// its seq, which is never used again. New entries gather in the small `ids_new`, for the same reason.
constexpr const char* kTables = R"sql(
CREATE TABLE queues (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE halves (
  half INTEGER PRIMARY KEY,
  messages INTEGER NOT NULL
) STRICT;
CREATE TABLE messages (
  seq INTEGER PRIMARY KEY,
  half INTEGER NOT NULL,
  sent_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  id TEXT NOT NULL,
  content_type TEXT,
  message_group TEXT,
  attributes BLOB,
  body BLOB NOT NULL,
  native BLOB
) STRICT;
CREATE TABLE ready (
  half INTEGER NOT NULL,
  sent_at INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (half, sent_at, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE suspects (
  half INTEGER NOT NULL,
  sent_at INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (half, sent_at, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE deliveries (
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
  suspect INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX deliveries_due ON deliveries (half, until, leased) WHERE until IS NOT NULL;
CREATE TABLE ids_new (
  hash INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (hash, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE ids (
  hash INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (hash, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE counters (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  next_seq INTEGER NOT NULL,
  new_ids INTEGER NOT NULL,
  old_ids INTEGER NOT NULL
) STRICT;
INSERT INTO counters VALUES (1, 1, 0, 0);
)sql";

// What hosts and operators tell each other, beside the messages.
constexpr const char* kNotices = R"sql(
CREATE TABLE notices (
  topic INTEGER NOT NULL,
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  posted_at INTEGER NOT NULL,
  text BLOB NOT NULL,
  PRIMARY KEY (topic, key)
) STRICT, WITHOUT ROWID;
)sql";

// Order within groups, and priorities. `kept` says what is kept of a queue's order, as lanes.hpp has it: 0 for queues
// that nobody asked for it. Then a message lies as ever, under a half of its own in `ready` if its priority is not the
// normal one. Where an order is kept, one message of each lane (a group, or the queue) lies in `ready` or `suspects`,
// at the time when its lane got its turn; the others that could be claimed lie in `chains`, one for each lane: an
// index by lane and time would write a page for each message, where a chain is written at its ends, which lie together.
// `before` of the first of a chain counts for nothing; nor does a row in `chains` whose message is the head of its
// lane, in flight, or done. `lanes` has a row while a message of the lane is there or
// something holds it, in the order in which they were made, which is about that of their turns: so what is settled
// together lies together. `holds` are dead letters whose group waits for an operator.
constexpr const char* kOrdering = R"sql(
ALTER TABLE queues ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN priority INTEGER;
CREATE TABLE chains (
  seq INTEGER PRIMARY KEY,
  half INTEGER NOT NULL,
  sent_at INTEGER NOT NULL,
  suspected INTEGER NOT NULL,
  before INTEGER,
  next INTEGER
) STRICT;
CREATE TABLE holds (
  seq INTEGER PRIMARY KEY,
  half INTEGER NOT NULL,
  lane INTEGER NOT NULL,
  sent_at INTEGER NOT NULL
) STRICT;
)sql";

// With defaults, as INSERT OR REPLACE otherwise copies each page that it touches, to be able to undo half a statement.
constexpr const char* kLanes = R"sql(
CREATE TABLE lanes (
  number INTEGER PRIMARY KEY,
  lane INTEGER NOT NULL DEFAULT 0,
  half INTEGER NOT NULL DEFAULT 0,
  head INTEGER,
  head_sent INTEGER NOT NULL DEFAULT 0,
  turn INTEGER NOT NULL DEFAULT 0,
  others INTEGER NOT NULL DEFAULT 0,
  first INTEGER,
  last INTEGER,
  last_sent INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE lane_numbers (
  lane INTEGER PRIMARY KEY,
  number INTEGER NOT NULL DEFAULT 0
) STRICT;
)sql";

// Messages that are done and whose rows in `messages` and `chains` are still there, as tombstones.hpp has them: a bit
// for each, in blocks of 4096. With a default, as `lanes` has them.
constexpr const char* kTombstones = R"sql(
CREATE TABLE tombstones (
  block INTEGER PRIMARY KEY,
  bits BLOB NOT NULL DEFAULT x''
) STRICT;
)sql";

// What has been sent lately, and what must not be sent twice.
// `until` and `last` are on a clock of the file's own, which never goes back; it is `ahead` of the machine's by as much
// as that has been set back so far.
constexpr const char* kSending = R"sql(
CREATE TABLE dedup_ids (
  queue INTEGER NOT NULL,
  key BLOB NOT NULL,
  until INTEGER NOT NULL,
  id TEXT NOT NULL,
  PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX dedup_ids_until ON dedup_ids (until);
CREATE TABLE unique_keys (
  queue INTEGER NOT NULL,
  key BLOB NOT NULL,
  until_done INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX unique_keys_seq ON unique_keys (seq);
CREATE TABLE send_clock (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  last INTEGER NOT NULL,
  ahead INTEGER NOT NULL
) STRICT;
INSERT INTO send_clock VALUES (1, 0, 0);
)sql";

// Idempotency keys: those in progress, and those that are done. A row of one message's record costs a fifth of what its
// whole end does; so the records of one commit that belong to one job and end at one time lie in one row, a batch
// (key_batch.hpp), of which `records` are left. They are found by hash: those in batches up to `indexed` by the runs of
// an index (key_runs.hpp), the younger ones by each process in memory (KeyIndex). `stamp` tells whether somebody else
// has written a record since.
constexpr const char* kKeyMarks = R"sql(
CREATE TABLE key_jobs (
  id INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  job TEXT NOT NULL,
  UNIQUE (queue, job)
) STRICT;
CREATE TABLE key_marks (
  hash INTEGER NOT NULL,
  job INTEGER NOT NULL,
  key BLOB NOT NULL,
  owner TEXT NOT NULL,
  fence INTEGER NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (hash, job, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX key_marks_until ON key_marks (until);
)sql";

// In `key_runs` with defaults, as `lanes` has them.
constexpr const char* kKeyRecords = R"sql(
CREATE TABLE key_batches (
  seq INTEGER PRIMARY KEY,
  job INTEGER NOT NULL,
  until INTEGER NOT NULL,
  records INTEGER NOT NULL,
  content BLOB NOT NULL
) STRICT;
CREATE TABLE key_runs (
  run INTEGER PRIMARY KEY,
  bits INTEGER NOT NULL DEFAULT 0,
  entries INTEGER NOT NULL DEFAULT 0,
  last INTEGER NOT NULL DEFAULT 0,
  from_run INTEGER NOT NULL DEFAULT 0,
  to_run INTEGER NOT NULL DEFAULT 0,
  merged_to INTEGER NOT NULL DEFAULT 0,
  sweeps INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE key_pages (
  id INTEGER PRIMARY KEY,
  entries BLOB NOT NULL
) STRICT;
CREATE TABLE key_counters (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  next_seq INTEGER NOT NULL,
  indexed INTEGER NOT NULL,
  records INTEGER NOT NULL,
  stamp INTEGER NOT NULL
) STRICT;
INSERT INTO key_counters VALUES (1, 1, 0, 0, 0);
)sql";

// From version 1, which had no `native`: the whole record as another store gave it.
constexpr const char* kUpgradeFrom1 = "ALTER TABLE messages ADD COLUMN native BLOB";

// From version 2, which had no suspects: received messages whose lease had ended lay in `ready`.
constexpr const char* kUpgradeFrom2 = R"sql(
ALTER TABLE deliveries ADD COLUMN suspect INTEGER NOT NULL DEFAULT 0;
CREATE TABLE suspects (
  half INTEGER NOT NULL,
  sent_at INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (half, sent_at, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO suspects SELECT half, sent_at, seq FROM deliveries WHERE until IS NULL AND received_at IS NOT NULL;
DELETE FROM ready WHERE (half, sent_at, seq) IN (SELECT half, sent_at, seq FROM suspects);
)sql";

// From version 5, whose lanes had no numbers.
constexpr const char* kUpgradeFrom5 = R"sql(
INSERT INTO lanes SELECT row_number() OVER (ORDER BY turn, lane), lane, half, head, head_sent, turn, others, first,
  last, last_sent FROM old_lanes;
INSERT INTO lane_numbers SELECT lane, number FROM lanes;
DROP TABLE old_lanes;
)sql";

// From version 6, which had a row for each record of a key, and an index over them.
constexpr const char* kUpgradeFrom6 = R"sql(
ALTER TABLE key_records RENAME TO old_key_records;
DROP TABLE key_hashes;
DROP TABLE key_counters;
)sql";

// From version 7, which deleted a message and its link as soon as they were done with. It knows nothing of tombstones:
// where it is still running it finds no `line`, and can neither send to groups nor settle their messages.
constexpr const char* kUpgradeFrom7 = "ALTER TABLE line RENAME TO chains";

enum class Found { empty, ours, older, foreign, newer };

/// Of one state of the file: inside a transaction.
Found look_inside(Connection& connection) {
  const std::int64_t application = connection.number("PRAGMA application_id");
  const std::int64_t version = connection.number("PRAGMA user_version");
  const std::int64_t tables = connection.number("SELECT count(*) FROM sqlite_schema");
  if (application == 0 && version == 0 && tables == 0) {
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

/// What version 4 did not have.
void make_since_5(Connection& connection) {
  for (const char* const tables : {kOrdering, kLanes, kTombstones, kSending, kKeyMarks, kKeyRecords}) {
    connection.execute(tables);
  }
}

/// From version 5, 6 or 7.
void bring_up_from_5(Connection& connection, std::int64_t version) {
  connection.execute(kUpgradeFrom7);
  connection.execute(kTombstones);
  if (version == 7) {
    return;
  }
  if (version < 6) {
    connection.execute("ALTER TABLE lanes RENAME TO old_lanes");
    connection.execute(kLanes);
    connection.execute(kUpgradeFrom5);
  }
  connection.execute(kUpgradeFrom6);
  connection.execute(kKeyRecords);
  rehash_old_marks(connection);
  batch_old_keys(connection);
  connection.execute("DROP TABLE old_key_records");
}

void bring_up(Connection& connection) {
  // Otherwise a table cannot be renamed beside a view of the user's that is broken.
  connection.execute("PRAGMA legacy_alter_table = ON; BEGIN IMMEDIATE");
  // Another process may have been quicker.
  const Found found = connection.failed() ? Found::ours : look_inside(connection);
  if (found == Found::older) {
    const std::int64_t version = connection.number("PRAGMA user_version");
    connection.keep_free("chains");
    connection.keep_free("tombstones");
    if (version < 2) {
      connection.execute(kUpgradeFrom1);
    }
    if (version < 3) {
      connection.execute(kUpgradeFrom2);
    }
    if (version < 4) {
      connection.execute(kNotices);
    }
    if (version < 5) {
      make_since_5(connection);
    } else {
      bring_up_from_5(connection, version);
    }
  }
  if (found == Found::empty) {
    connection.execute(kTables);
    connection.execute(kNotices);
    make_since_5(connection);
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
