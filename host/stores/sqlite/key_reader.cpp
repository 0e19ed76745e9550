#include <algorithm>
#include <charconv>
#include <functional>

#include "host/stores/sqlite/key_batch.hpp"
#include "host/stores/sqlite/key_runs.hpp"
#include "host/stores/sqlite/keys.hpp"
#include "host/stores/sqlite/times.hpp"

// How operators read keys.
namespace sluice::queue::sqlite {

namespace {

/// Marks come first, by their hash; then records, as they were made. A cursor is the letter of either and a number; of
/// records that is their batch, behind which, after a point, is how far it was shown.
struct KeyCursor {
  bool records = false;
  std::int64_t after = -1;
  std::size_t within = 0;
};

KeyCursor read_cursor(const std::string& text) {
  KeyCursor cursor;
  if (!text.empty()) {
    cursor.records = text.front() == 'r';
    const char* const end = text.data() + text.size();
    const auto [rest, code] = std::from_chars(text.data() + 1, end, cursor.after);
    if (rest != end && *rest == '.') {
      std::from_chars(rest + 1, end, cursor.within);
    }
  }
  return cursor;
}

std::string written(const KeyCursor& cursor) {
  return (cursor.records ? "r" : "m") + std::to_string(cursor.after) +
         (cursor.within > 0 ? "." + std::to_string(cursor.within) : "");
}

std::optional<std::string_view> filter(const std::string& job) {
  return job.empty() ? std::nullopt : std::optional<std::string_view>(job);
}

StoredKey stored_key(std::string_view job, const BatchedKey& record, std::int64_t until) {
  return {.job = std::string(job),
          .key = std::string(record.key),
          .owner = std::string(record.owner),
          .done = true,
          .result = std::string(record.result),
          .until = loaded(until)};
}

/// Fills the page, as far as there are any.
void list_marks(Statement& rows, std::size_t limit, KeyCursor& from, KeyPage& page) {
  while (page.keys.size() < limit && rows.row()) {
    from.after = rows.integer(0);
    page.keys.push_back({.job = std::string(rows.bytes(1)),
                         .key = std::string(rows.bytes(2)),
                         .owner = std::string(rows.bytes(3)),
                         .until = loaded(rows.integer(4))});
  }
  rows.reset();
}

void list_records(Statement& rows, std::size_t limit, KeyCursor& from, KeyPage& page) {
  while (page.keys.size() < limit && rows.row()) {
    const std::int64_t seq = rows.integer(0);
    const std::string_view batch = rows.bytes(3);
    KeyBatchReader reader(batch, seq == from.after ? std::min(from.within, batch.size()) : 0);
    from = {.records = true, .after = seq, .within = batch.size()};
    while (const auto record = reader.next()) {
      if (page.keys.size() == limit) {
        from.within = record->from;
        break;
      }
      page.keys.push_back(stored_key(rows.bytes(1), *record, rows.integer(2)));
    }
  }
  rows.reset();
}

/// Batches that may have a record of this hash: those of the index, and those that are not in it yet.
std::vector<std::int64_t> batches_of(Connection& connection, std::int64_t hash) {
  std::vector<std::int64_t> seqs;
  KeyRuns runs(connection);
  runs.load();
  runs.find(hash, seqs);
  Statement young(connection,
                  "SELECT seq FROM sluice_key_batches WHERE seq > (SELECT indexed FROM sluice_key_counters)");
  while (young.row()) {
    seqs.push_back(young.integer(0));
  }
  young.reset();
  std::sort(seqs.begin(), seqs.end(), std::greater<>());
  return seqs;
}

}  // namespace

KeyPage list_keys(Connection& connection, std::int64_t queue, const std::string& job, std::size_t limit,
                  const std::string& cursor, WallTime now) {
  constexpr const char* kMarks =
      "SELECT m.hash, j.job, m.key, m.owner, m.until FROM sluice_key_marks AS m CROSS JOIN sluice_key_jobs AS j ON "
      "j.id = m.job "
      "WHERE m.hash > ?1 AND j.queue = ?2 AND j.job = coalesce(?3, j.job) AND m.until > ?4 ORDER BY m.hash";
  constexpr const char* kRecords =
      "SELECT b.seq, j.job, b.until, b.content FROM sluice_key_batches AS b CROSS JOIN sluice_key_jobs AS j ON j.id = "
      "b.job "
      "WHERE b.seq >= ?1 AND j.queue = ?2 AND j.job = coalesce(?3, j.job) AND b.until > ?4 ORDER BY b.seq";
  KeyCursor from = read_cursor(cursor);
  KeyPage page;
  if (!from.records) {
    Statement marks(connection, kMarks);
    marks.bind(from.after, queue, filter(job), stored(now));
    list_marks(marks, limit, from, page);
  }
  if (page.keys.size() < limit) {
    if (!from.records) {
      from = {.records = true};
    }
    Statement records(connection, kRecords);
    records.bind(from.after, queue, filter(job), stored(now));
    list_records(records, limit, from, page);
    if (page.keys.size() < limit) {
      return page;
    }
  }
  page.next = written(from);
  return page;
}

std::optional<StoredKey> find_key(Connection& connection, std::int64_t queue, const std::string& job,
                                  const std::string& key, WallTime now) {
  Statement number(connection, "SELECT id FROM sluice_key_jobs WHERE queue = ?1 AND job = ?2");
  number.bind(queue, std::string_view(job));
  if (!number.row()) {
    return std::nullopt;
  }
  const std::int64_t id = number.integer(0);
  number.reset();
  const std::int64_t hash = key_hash(id, key);
  std::optional<StoredKey> found;
  Statement done(connection,
                 "SELECT content, until FROM sluice_key_batches WHERE seq = ?1 AND job = ?2 AND until > ?3");
  for (const std::int64_t seq : batches_of(connection, hash)) {
    done.bind(seq, id, stored(now));
    if (done.row()) {
      if (const auto record = find_in_batch(done.bytes(0), key)) {
        found = stored_key(job, *record, done.integer(1));
      }
    }
    done.reset();
    if (found) {
      return found;
    }
  }
  Statement mark(connection,
                 "SELECT owner, until FROM sluice_key_marks WHERE hash = ?1 AND job = ?2 AND key = ?3 AND until > ?4");
  mark.bind(hash, id, Blob{key}, stored(now));
  if (mark.row()) {
    found = {.job = job, .key = key, .owner = std::string(mark.bytes(0)), .until = loaded(mark.integer(1))};
  }
  mark.reset();
  return found;
}

}  // namespace sluice::queue::sqlite
