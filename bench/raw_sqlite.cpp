#include "bench/raw_sqlite.hpp"

#include <sqlite3.h>

#include <functional>
#include <stdexcept>
#include <utility>

namespace sluice::bench {

struct RawSqlite::Session {
  sqlite3* handle = nullptr;
  sqlite3_stmt* begin = nullptr;
  sqlite3_stmt* commit = nullptr;
  sqlite3_stmt* insert = nullptr;
  sqlite3_stmt* select = nullptr;
  sqlite3_stmt* update = nullptr;
  sqlite3_stmt* remove = nullptr;
  sqlite3_stmt* emit = nullptr;
  sqlite3_stmt* emit_all = nullptr;
  sqlite3_stmt* write = nullptr;
  std::int64_t now = 0;
  std::int64_t last = 0;  ///< seq
  std::vector<std::pair<std::int64_t, std::string>> claimed;

  ~Session() {
    for (sqlite3_stmt* statement : {begin, commit, insert, select, update, remove, emit, emit_all, write}) {
      sqlite3_finalize(statement);
    }
    sqlite3_close(handle);
  }
  void check(bool good) const {
    if (!good) {
      throw std::runtime_error(std::string("raw SQLite: ") + sqlite3_errmsg(handle));
    }
  }
  void execute(const char* sql) const { check(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) == SQLITE_OK); }
  sqlite3_stmt* prepare(const char* sql) const {
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v3(handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) == SQLITE_OK);
    return statement;
  }
  void run(sqlite3_stmt* statement) const {
    check(sqlite3_step(statement) == SQLITE_DONE);
    sqlite3_reset(statement);
  }
};

namespace {

// A queue for what is emitted, and so many numbers as one transaction emits messages at most.
constexpr int kNumbers = 1'000;

void make_effects(const std::function<void(const char*)>& execute) {
  const std::string sql =
      "CREATE TABLE accounts (number INTEGER PRIMARY KEY, balance INTEGER NOT NULL); "
      "CREATE TABLE numbers (number INTEGER PRIMARY KEY); "
      "WITH RECURSIVE n (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM n WHERE number + 1 < " +
      std::to_string(kNumbers) +
      ") INSERT INTO numbers SELECT number FROM n; INSERT INTO accounts SELECT number, 0 FROM numbers";
  execute(sql.c_str());
}

}  // namespace

RawSqlite::RawSqlite(const std::string& path, std::size_t messages) : session_(std::make_unique<Session>()) {
  Session& s = *session_;
  s.check(sqlite3_open(path.c_str(), &s.handle) == SQLITE_OK);
  s.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = OFF");
  s.execute(
      "CREATE TABLE messages (seq INTEGER PRIMARY KEY, queue INTEGER NOT NULL, due INTEGER NOT NULL, "
      "version INTEGER NOT NULL, receives INTEGER NOT NULL, id TEXT NOT NULL, body BLOB NOT NULL) STRICT; "
      "CREATE INDEX messages_due ON messages (queue, due)");
  s.begin = s.prepare("BEGIN IMMEDIATE");
  s.commit = s.prepare("COMMIT");
  s.insert = s.prepare("INSERT INTO messages VALUES (?1, 1, ?1, 1, 0, printf('%036d', ?1), zeroblob(100))");
  s.select = s.prepare("SELECT seq, id, body FROM messages WHERE queue = 1 AND due <= ?1 ORDER BY due LIMIT ?2");
  s.update = s.prepare("UPDATE messages SET due = ?2, version = version + 1, receives = receives + 1 WHERE seq = ?1");
  s.remove = s.prepare("DELETE FROM messages WHERE seq = ?1 AND version = 2");
  make_effects([&s](const char* sql) { s.execute(sql); });
  s.emit = s.prepare("INSERT INTO messages VALUES (?1, 2, ?1, 1, 0, printf('%036d', ?1), zeroblob(100))");
  s.emit_all = s.prepare(
      "INSERT OR FAIL INTO messages SELECT ?1 + number, 2, ?1 + number, 1, 0, printf('%036d', ?1 + number), "
      "zeroblob(100) FROM numbers WHERE number < ?2");
  s.write = s.prepare("UPDATE accounts SET balance = balance + ?1 WHERE number = ?2");
  for (std::size_t i = 1; i <= messages;) {
    s.run(s.begin);
    for (std::size_t end = i + 1000; i < end && i <= messages; ++i) {
      sqlite3_bind_int64(s.insert, 1, static_cast<std::int64_t>(i));
      s.run(s.insert);
    }
    s.run(s.commit);
  }
  s.now = static_cast<std::int64_t>(messages);
  s.last = s.now;
}

RawSqlite::~RawSqlite() = default;

std::size_t RawSqlite::claim(std::size_t max) {
  Session& s = *session_;
  s.claimed.clear();
  s.run(s.begin);
  sqlite3_bind_int64(s.select, 1, s.now);
  sqlite3_bind_int64(s.select, 2, static_cast<std::int64_t>(max));
  while (sqlite3_step(s.select) == SQLITE_ROW) {
    const auto* body = static_cast<const char*>(sqlite3_column_blob(s.select, 2));
    s.claimed.emplace_back(sqlite3_column_int64(s.select, 0),
                           std::string(body, static_cast<std::size_t>(sqlite3_column_bytes(s.select, 2))));
  }
  sqlite3_reset(s.select);
  for (const auto& [seq, body] : s.claimed) {
    sqlite3_bind_int64(s.update, 1, seq);
    sqlite3_bind_int64(s.update, 2, s.now + seq + 30'000'000'000);
    s.run(s.update);
  }
  s.run(s.commit);
  return s.claimed.size();
}

void RawSqlite::remove(RawEffects effects) {
  Session& s = *session_;
  s.run(s.begin);
  for (const auto& [seq, body] : s.claimed) {
    sqlite3_bind_int64(s.remove, 1, seq);
    s.run(s.remove);
    if (effects != RawEffects::none) {
      sqlite3_bind_int64(s.write, 1, 1);
      // Spread over the accounts, and the same in each run.
      sqlite3_bind_int64(s.write, 2, seq * 7919 % kNumbers);
      s.run(s.write);
    }
    if (effects == RawEffects::each) {
      sqlite3_bind_int64(s.emit, 1, ++s.last);
      s.run(s.emit);
    }
  }
  if (effects == RawEffects::together) {
    const auto count = static_cast<std::int64_t>(s.claimed.size());
    sqlite3_bind_int64(s.emit_all, 1, s.last + 1);
    sqlite3_bind_int64(s.emit_all, 2, count);
    s.run(s.emit_all);
    s.last += count;
  }
  s.run(s.commit);
}

UserTable::UserTable(const std::string& path, std::int64_t accounts) {
  sqlite3* handle = nullptr;
  const std::string sql =
      "CREATE TABLE accounts (number INTEGER PRIMARY KEY, balance INTEGER NOT NULL); "
      "WITH RECURSIVE numbers (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number + 1 < " +
      std::to_string(accounts) + ") INSERT INTO accounts SELECT number, 0 FROM numbers";
  const bool made = sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK &&
                    sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  sqlite3_close(handle);
  if (!made) {
    throw std::runtime_error("cannot make the user's table in " + path);
  }
}

}  // namespace sluice::bench
