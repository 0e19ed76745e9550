#include <charconv>

#include "host/stores/sqlite/id_index.hpp"
#include "host/stores/sqlite/keys.hpp"
#include "host/stores/sqlite/times.hpp"

// How operators read keys.
namespace sluice::queue::sqlite {

namespace {

/// Marks come first, by their hash; then records, as they were made. A cursor is the letter of either and a number.
struct KeyCursor {
  bool records = false;
  std::int64_t after = -1;
};

KeyCursor read_cursor(const std::string& text) {
  KeyCursor cursor;
  if (!text.empty()) {
    cursor.records = text.front() == 'r';
    std::from_chars(text.data() + 1, text.data() + text.size(), cursor.after);
  }
  return cursor;
}

std::optional<std::string_view> filter(const std::string& job) {
  return job.empty() ? std::nullopt : std::optional<std::string_view>(job);
}

StoredKey stored_key(const Statement& row, bool done) {
  StoredKey key{.job = std::string(row.bytes(1)), .key = std::string(row.bytes(2)), .done = done};
  key.owner = row.is_null(3) ? key.key : std::string(row.bytes(3));
  key.until = loaded(row.integer(4));
  if (done) {
    key.result = row.bytes(5);
  }
  return key;
}

}  // namespace

KeyPage list_keys(Connection& connection, std::int64_t queue, const std::string& job, std::size_t limit,
                  const std::string& cursor, WallTime now) {
  constexpr const char* kMarks =
      "SELECT m.hash, j.job, m.key, m.owner, m.until FROM key_marks AS m CROSS JOIN key_jobs AS j ON j.id = m.job "
      "WHERE m.hash > ?1 AND j.queue = ?2 AND j.job = coalesce(?3, j.job) AND m.until > ?4 ORDER BY m.hash LIMIT ?5";
  constexpr const char* kRecords =
      "SELECT r.seq, j.job, r.key, r.owner, r.until, r.result FROM key_records AS r CROSS JOIN key_jobs AS j "
      "ON j.id = r.job WHERE r.seq > ?1 AND j.queue = ?2 AND j.job = coalesce(?3, j.job) AND r.until > ?4 "
      "ORDER BY r.seq LIMIT ?5";
  KeyCursor from = read_cursor(cursor);
  KeyPage page;
  while (page.keys.size() < limit) {
    Statement rows(connection, from.records ? kRecords : kMarks);
    rows.bind(from.after, queue, filter(job), stored(now), static_cast<std::int64_t>(limit - page.keys.size()));
    while (rows.row()) {
      from.after = rows.integer(0);
      page.keys.push_back(stored_key(rows, from.records));
    }
    rows.reset();
    if (page.keys.size() < limit && from.records) {
      return page;
    }
    if (page.keys.size() < limit) {
      from = {.records = true};
    }
  }
  page.next = (from.records ? "r" : "m") + std::to_string(from.after);
  return page;
}

std::optional<StoredKey> find_key(Connection& connection, std::int64_t queue, const std::string& job,
                                  const std::string& key, WallTime now) {
  Statement number(connection, "SELECT id FROM key_jobs WHERE queue = ?1 AND job = ?2");
  number.bind(queue, std::string_view(job));
  if (!number.row()) {
    return std::nullopt;
  }
  const std::int64_t id = number.integer(0);
  number.reset();
  const std::int64_t hash = IdLookup::hash(id, key);
  std::optional<StoredKey> found;
  Statement done(connection,
                 "SELECT r.seq, ?5, r.key, r.owner, r.until, r.result FROM (SELECT seq FROM key_hashes WHERE hash = ?1 "
                 "UNION SELECT seq FROM key_records WHERE seq > (SELECT indexed FROM key_counters) AND key = ?3) "
                 "AS entry CROSS JOIN key_records AS r ON r.seq = entry.seq WHERE r.job = ?2 AND r.key = ?3 AND "
                 "r.until > ?4 ORDER BY r.seq DESC");
  done.bind(hash, id, Blob{key}, stored(now), std::string_view(job));
  if (done.row()) {
    found = stored_key(done, true);
  }
  done.reset();
  Statement mark(connection,
                 "SELECT hash, ?5, key, owner, until FROM key_marks WHERE hash = ?1 AND job = ?2 AND key = ?3 AND "
                 "until > ?4");
  mark.bind(hash, id, Blob{key}, stored(now), std::string_view(job));
  if (!found && mark.row()) {
    found = stored_key(mark, false);
  }
  mark.reset();
  return found;
}

}  // namespace sluice::queue::sqlite
