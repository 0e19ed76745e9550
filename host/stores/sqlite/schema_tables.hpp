#pragma once

/// The tables of a store's file, as they are made in a new one.
namespace sluice::queue::sqlite {

// A message lies in `messages` and is, from then on, written only when an operator edits it or it changes halves: so a
// claim, an extension or a retry costs the same for a large body as for a small one. Where it stands is told by two
// small tables: it has either an entry in `ready` (or in `suspects`, when its next delivery is one), or a row in
// `deliveries` with `until` set. A message without a row in `deliveries` has never been touched: version 1, no
// delivery. `half` is twice the queue's id, plus one for the DLQ.
//
// Deleting from an index over random ids would write one page for each message. So entries of `ids_fresh` and `ids`
// stay when their message goes, and are swept in order of their hash later; an entry counts only as long as `messages`
// has its seq, which is never used again. New entries gather in the small `ids_fresh`, for the same reason. Ids that we
// make begin with their time, and so do their hashes: those of one batch lie on few pages.
inline constexpr const char* kTables = R"sql(
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
CREATE TABLE ids_fresh (
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
inline constexpr const char* kNotices = R"sql(
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
inline constexpr const char* kOrdering = R"sql(
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
inline constexpr const char* kLanes = R"sql(
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
inline constexpr const char* kTombstones = R"sql(
CREATE TABLE tombstones (
  block INTEGER PRIMARY KEY,
  bits BLOB NOT NULL DEFAULT x''
) STRICT;
)sql";

// What has been sent lately, and what must not be sent twice.
// `until` and `last` are on a clock of the file's own, which never goes back; it is `ahead` of the machine's by as much
// as that has been set back so far.
inline constexpr const char* kSending = R"sql(
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
inline constexpr const char* kKeyMarks = R"sql(
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
inline constexpr const char* kKeyRecords = R"sql(
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

}  // namespace sluice::queue::sqlite
