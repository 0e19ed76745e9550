#pragma once

/// The tables of a store's file, as they are made in a new one.
namespace sluice::queue::sqlite {

// A message lies in `messages` and is, from then on, written only when an operator edits it or it changes halves: so a
// claim, an extension or a retry costs the same for a large body as for a small one. Where it stands is told by two
// small tables: it has either an entry in `ready` (or in `suspects`, when its next delivery is one), or a row in
// `deliveries` with `until` set. A message without a row in `deliveries` has never been touched: version 1, no
// delivery. `half` is twice the queue's id, plus one for the DLQ.
//
// Ids that we make begin with their time, so that those which come and go together lie together in their index.
inline constexpr const char* kTables = R"sql(
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
CREATE TABLE sluice_suspects (
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
  suspect INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX sluice_deliveries_due ON sluice_deliveries (half, until, leased) WHERE until IS NOT NULL;
CREATE TABLE sluice_counters (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  next_seq INTEGER NOT NULL
) STRICT;
INSERT INTO sluice_counters VALUES (1, 1);
)sql";

// What hosts and operators tell each other, beside the messages.
inline constexpr const char* kNotices = R"sql(
CREATE TABLE sluice_notices (
  topic INTEGER NOT NULL,
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  posted_at INTEGER NOT NULL,
  text BLOB NOT NULL,
  PRIMARY KEY (topic, key)
) STRICT, WITHOUT ROWID;
)sql";

// Order within groups. `queues.kept` says what is kept of a queue's order, as group_order.hpp has it: 0 for queues that
// nobody asked for it. Then a message lies as ever, under a half of its own in `ready` if its priority is not the
// normal one. Where an order is kept, one message of each group (or of the queue) lies in `ready` or `suspects`, at the
// time when its group got its turn; the others that could be claimed lie in `waiting`. `groups` has a row while a
// message of the group is there to be claimed or something holds it. `holds` are dead letters whose group waits for an
// operator.
inline constexpr const char* kOrdering = R"sql(
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
)sql";

// What has been sent lately, and what must not be sent twice.
// `until` and `last` are on a clock of the file's own, which never goes back; it is `ahead` of the machine's by as much
// as that has been set back so far.
inline constexpr const char* kSending = R"sql(
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
)sql";

// Idempotency keys: marks of those in progress, and records of those that are done. An owner who is the key itself is
// NULL. With defaults, as INSERT OR REPLACE otherwise copies each page that it touches, to be able to undo half a
// statement.
inline constexpr const char* kKeys = R"sql(
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

}  // namespace sluice::queue::sqlite
