#include <algorithm>
#include <chrono>
#include <utility>

#include "host/stores/outbox/postgres/mark_writer.hpp"
#include "host/stores/outbox/postgres/sessions.hpp"

namespace sluice::queue::outbox::postgres {
namespace {

// Buckets are numbered below this, and members above it, in the second half of an advisory lock's key.
constexpr std::uint32_t kMembers = 0x40000000;
constexpr int kIdleLimitSince = 140000;

/// The first half of the keys of a space's locks: FNV-1a, which every version of the program computes alike.
std::int32_t key_of(const std::string& name) {
  std::uint32_t hash = 2166136261U;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  return static_cast<std::int32_t>(hash);
}

// $3 is the session's own process: behind a pool it may be another one's turn, whose locks are not ours.
constexpr const char* kCountMembers =
    "SELECT count(*) FILTER (WHERE objid = $2::bigint), coalesce(max(objid::bigint) FILTER (WHERE objid <> "
    "$2::bigint), 0), pg_backend_pid() = $3::int AND coalesce(bool_or(pid = $3::int AND objid = $2::bigint), false) "
    "FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = ($1::bigint & 4294967295) "
    "AND objid >= 1073741824 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

}  // namespace

Result<std::unique_ptr<LockSession>> PostgresLocks::open(const Settings& settings, const TableSql& sql,
                                                         Deadline deadline) {
  SLUICE_TRY(connection, open_session(settings, {}, deadline));
  if ((*connection)->server_version() >= kIdleLimitSince) {
    const auto lease = std::chrono::duration_cast<std::chrono::milliseconds>(settings.connect.lease);
    const auto limited =
        (*connection)
            ->run({"SELECT set_config('idle_session_timeout', $1, false)", {std::to_string(lease.count())}}, deadline);
    SLUICE_PASS_ON(limited);
  }
  return std::unique_ptr<LockSession>(new PostgresLocks(std::move(*connection), sql));
}

Result<Members> PostgresLocks::join(const LockSpace& space, Deadline deadline) {
  // By the table's full name, which is one for all, whatever their settings and search paths leave out.
  SLUICE_TRY(table, connection_->run({"SELECT format('%I.%I', n.nspname, c.relname), pg_backend_pid() FROM pg_class c "
                                      "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)",
                                      {sql_.table()}},
                                     deadline));
  if (table->rows() == 0) {
    return Error(ErrorCode::queue_missing, "there is no table " + sql_.table() +
                                               "; check 'schema' and 'table', or make it with what `sluice outbox ddl` "
                                               "prints");
  }
  space_ = key_of(std::string(table->text(0, 0)) + "/" + space.name);
  buckets_ = space.buckets;
  process_ = table->number(0, 1);
  SLUICE_TRY(entered, enter(deadline));
  return *entered ? beat(deadline) : Result<Members>(shared_sessions(ErrorCode::invalid));
}

// A session that has locks already is somebody else's too, and would have his locks as well.
Result<bool> PostgresLocks::enter(Deadline deadline) {
  const auto entered = connection_->run(
      {"WITH here AS MATERIALIZED (SELECT pg_backend_pid() = $3::int AND NOT EXISTS (SELECT 1 FROM pg_locks WHERE "
       "locktype = 'advisory' AND pid = pg_backend_pid()) AS fresh) SELECT CASE WHEN fresh THEN "
       "pg_try_advisory_lock_shared($1::int, $2::int) ELSE false END FROM here",
       {std::to_string(space_), std::to_string(kMembers + buckets_), std::to_string(process_)}},
      deadline);
  return entered ? Result<bool>(entered->flag(0, 0)) : entered.error();
}

Result<Members> PostgresLocks::beat(Deadline deadline) {
  SLUICE_TRY(counted,
             connection_->run({kCountMembers,
                               {std::to_string(space_), std::to_string(kMembers + buckets_), std::to_string(process_)}},
                              deadline));
  if (!counted->flag(0, 2)) {
    return shared_sessions(ErrorCode::unavailable);
  }
  const auto other = counted->number(0, 1);
  return Members{.count = static_cast<std::uint32_t>(std::max<std::int64_t>(counted->number(0, 0), 1)),
                 .other_buckets = other == 0 ? 0 : static_cast<std::uint32_t>(other) - kMembers};
}

Result<std::vector<std::uint32_t>> PostgresLocks::lock(std::span<const std::uint32_t> buckets, Deadline deadline) {
  const auto got =
      connection_->run({"SELECT b FROM unnest($2::int[]) AS b WHERE CASE WHEN pg_backend_pid() = $3::int THEN "
                        "pg_try_advisory_lock($1::int, b) END",
                        {std::to_string(space_), array_of(buckets), std::to_string(process_)}},
                       deadline);
  SLUICE_PASS_ON(got);
  std::vector<std::uint32_t> locked;
  locked.reserve(static_cast<std::size_t>(got->rows()));
  for (int row = 0; row < got->rows(); ++row) {
    locked.push_back(static_cast<std::uint32_t>(got->number(row, 0)));
  }
  return locked;
}

Result<void> PostgresLocks::unlock(std::span<const std::uint32_t> buckets, Deadline deadline) {
  const auto done = connection_->run(
      {"SELECT count(CASE WHEN pg_backend_pid() = $3::int THEN pg_advisory_unlock($1::int, b) END) FROM "
       "unnest($2::int[]) AS b",
       {std::to_string(space_), array_of(buckets), std::to_string(process_)}},
      deadline);
  return done ? Result<void>() : done.error();
}

Result<std::vector<MarkStatus>> PostgresLocks::mark(std::span<const Mark> marks, Deadline deadline) {
  return write_marks(*connection_, sql_, marks, nullptr, deadline);
}

}  // namespace sluice::queue::outbox::postgres
