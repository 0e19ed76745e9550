#include "host/stores/sqlite/upgrade.hpp"

#include <string>

#include "host/stores/sqlite/old_ids.hpp"
#include "host/stores/sqlite/old_keys.hpp"
#include "host/stores/sqlite/schema.hpp"
#include "host/stores/sqlite/schema_tables.hpp"

namespace sluice::queue::sqlite {

namespace {

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

// From version 8, to which the time in an id was nothing. Where it is still running it finds no `ids_new`, and can send
// nothing.
constexpr const char* kUpgradeFrom8 = "ALTER TABLE ids_new RENAME TO ids_fresh";

/// From version 5, 6, 7 or 8.
void bring_up_from_5(Connection& connection, std::int64_t version) {
  if (version < 8) {
    connection.execute(kUpgradeFrom7);
    connection.execute(kTombstones);
  }
  if (version > 6) {
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

}  // namespace

void make_tables_since_5(Connection& connection) {
  for (const char* const tables : {kOrdering, kLanes, kTombstones, kSending, kKeyMarks, kKeyRecords}) {
    connection.execute(tables);
  }
}

void upgrade(Connection& connection, std::int64_t version) {
  const std::string otherwise = " and a file of version " + std::to_string(version) +
                                " has not; if somebody has changed its version, set that back: PRAGMA user_version = " +
                                std::to_string(kSchemaVersion);
  if (version < 8) {
    connection.keep_free("chains", otherwise);
    connection.keep_free("tombstones", otherwise);
  }
  connection.keep_free("ids_fresh", otherwise);
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
    make_tables_since_5(connection);
  } else {
    bring_up_from_5(connection, version);
  }
  connection.execute(kUpgradeFrom8);
  rehash_ids_with_time(connection);
}

}  // namespace sluice::queue::sqlite
