#include "host/stores/outbox/postgres/locks.hpp"

#include <algorithm>
#include <utility>

namespace sluice::queue::outbox::postgres {

using sql::Cells;
using sql::flag_of;
using sql::list_of;
using sql::number_of;
using sql::SqlConnection;
using sql::SqlServer;
using sql::SqlTable;

Error no_table(const SqlTable& table, const std::string& user) {
  return {ErrorCode::queue_missing,
          table.sql("there is no table @TABLE") + user +
              "; check 'schema' and 'table', or make it with what `sluice outbox ddl` prints"};
}

Error shared_sessions(ErrorCode code) {
  return {code,
          "the server's sessions are dealt out to several clients, as PgBouncer does with pool_mode = transaction, so "
          "that locks of a session keep nobody away; set coordination = \"table\" in [outbox.NAME], or connect "
          "directly, or through a pool with pool_mode = session and server_reset_query = DISCARD ALL"};
}

namespace {

/// Advisory locks, which a session holds until it ends.
class PostgresLocks final : public LockSession {
 public:
  PostgresLocks(SqlServer& server, std::unique_ptr<SqlConnection> connection)
      : server_(server), connection_(std::move(connection)) {}

  Result<Members> join(const LockSpace& space, Deadline deadline) override {
    const SqlTable& table = server_.table();
    // By the table's full name, which is one for all, whatever their settings and search paths leave out.
    SLUICE_TRY(named,
               connection_->run(
                   table.sql("SELECT format('%I.%I', n.nspname, c.relname), pg_backend_pid() FROM pg_class c JOIN "
                             "pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(@TABLE_TEXT)"),
                   deadline));
    if (named->rows.empty()) {
      return no_table(table);
    }
    const Cells& row = named->rows.front();
    space_ = std::to_string(key_of(row[0].value_or("") + "/" + space.name));
    member_ = std::to_string(kMembers + space.buckets);
    process_ = row[1].value_or("");
    // A session that has locks already is somebody else's too, and would have his locks as well.
    SLUICE_TRY(entered,
               run("WITH here AS MATERIALIZED (SELECT pg_backend_pid() = @3 AND NOT EXISTS (SELECT 1 FROM pg_locks "
                   "WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS fresh) SELECT CASE WHEN fresh THEN "
                   "pg_try_advisory_lock_shared((@1)::int, @2) ELSE false END FROM here",
                   deadline));
    return flag_of(entered->rows.front()[0]) ? beat(deadline) : Result<Members>(shared_sessions(ErrorCode::invalid));
  }

  Result<Members> beat(Deadline deadline) override {
    // Behind a pool it may be another process's turn, whose locks are not ours.
    SLUICE_TRY(
        counted,
        run("SELECT count(*) FILTER (WHERE objid = @2), COALESCE(max(objid::bigint) FILTER (WHERE objid <> @2), "
            "0), pg_backend_pid() = @3 AND COALESCE(bool_or(pid = @3 AND objid = @2), false) FROM pg_locks WHERE "
            "locktype = 'advisory' AND granted AND objsubid = 2 AND classid = ((@1)::bigint & 4294967295) AND "
            "objid >= 1073741824 AND database = (SELECT oid FROM pg_database WHERE datname = "
            "current_database())",
            deadline));
    const Cells& row = counted->rows.front();
    if (!flag_of(row[2])) {
      return shared_sessions(ErrorCode::unavailable);
    }
    const auto other = number_of(row[1]);
    return Members{.count = static_cast<std::uint32_t>(std::max<std::int64_t>(number_of(row[0]), 1)),
                   .other_buckets = other == 0 ? 0 : static_cast<std::uint32_t>(other) - kMembers};
  }

  Result<std::vector<std::uint32_t>> lock(std::span<const std::uint32_t> buckets, Deadline deadline) override {
    SLUICE_TRY(got, run("SELECT b FROM unnest('{@4}'::int[]) AS b WHERE CASE WHEN pg_backend_pid() = @3 THEN "
                        "pg_try_advisory_lock((@1)::int, b) END",
                        deadline, list_of(buckets)));
    std::vector<std::uint32_t> locked;
    locked.reserve(got->rows.size());
    for (const Cells& row : got->rows) {
      locked.push_back(static_cast<std::uint32_t>(number_of(row[0])));
    }
    return locked;
  }

  Result<void> unlock(std::span<const std::uint32_t> buckets, Deadline deadline) override {
    SLUICE_PASS_ON(
        run("SELECT count(CASE WHEN pg_backend_pid() = @3 THEN pg_advisory_unlock((@1)::int, b) END) FROM "
            "unnest('{@4}'::int[]) AS b",
            deadline, list_of(buckets)));
    return {};
  }

  Result<std::vector<MarkStatus>> mark(std::span<const Mark> marks, Deadline deadline) override {
    return sql::write_marks(server_, *connection_, marks, nullptr, deadline);
  }

 private:
  // Buckets are numbered below this, and members above it, in the second half of an advisory lock's key.
  static constexpr std::uint32_t kMembers = 0x40000000;

  /// The first half of the keys of a space's locks: FNV-1a, which every version of the program computes alike.
  static std::int32_t key_of(const std::string& name) {
    std::uint32_t hash = 2166136261U;
    for (const char c : name) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    }
    return static_cast<std::int32_t>(hash);
  }

  Result<sql::Answer> run(const char* pattern, Deadline deadline, const std::string& buckets = {}) {
    return connection_->run(server_.table().sql(pattern, {space_, member_, process_, buckets}), deadline);
  }

  SqlServer& server_;
  const std::unique_ptr<SqlConnection> connection_;
  std::string space_;
  std::string member_;
  std::string process_;  ///< the server's, whose locks these are
};

}  // namespace

std::unique_ptr<LockSession> make_locks(SqlServer& server, std::unique_ptr<SqlConnection> connection) {
  return std::make_unique<PostgresLocks>(server, std::move(connection));
}

}  // namespace sluice::queue::outbox::postgres
