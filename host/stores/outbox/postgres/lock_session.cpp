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

constexpr const char* kCountMembers =
    "SELECT count(*) FILTER (WHERE objid = $2::bigint), coalesce(max(objid::bigint) FILTER (WHERE objid <> "
    "$2::bigint), 0) "
    "FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = ($1::bigint & 4294967295) "
    "AND objid >= 1073741824 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

}  // namespace

Result<std::unique_ptr<LockSession>> PostgresLocks::open(const Settings& settings, const TableSql& sql,
                                                         Deadline deadline) {
  auto connection = open_session(settings, {}, deadline);
  if (!connection) {
    return connection.error();
  }
  if ((*connection)->server_version() >= kIdleLimitSince) {
    const auto lease = std::chrono::duration_cast<std::chrono::milliseconds>(settings.connect.lease);
    const auto limited =
        (*connection)
            ->run({"SELECT set_config('idle_session_timeout', $1, false)", {std::to_string(lease.count())}}, deadline);
    if (!limited) {
      return limited.error();
    }
  }
  return std::unique_ptr<LockSession>(new PostgresLocks(std::move(*connection), sql));
}

Result<Members> PostgresLocks::join(const LockSpace& space, Deadline deadline) {
  space_ = key_of(space.name);
  buckets_ = space.buckets;
  const auto joined = connection_->run({"SELECT pg_advisory_lock_shared($1::int, $2::int)",
                                        {std::to_string(space_), std::to_string(kMembers + buckets_)}},
                                       deadline);
  return joined ? beat(deadline) : joined.error();
}

Result<Members> PostgresLocks::beat(Deadline deadline) {
  const auto counted =
      connection_->run({kCountMembers, {std::to_string(space_), std::to_string(kMembers + buckets_)}}, deadline);
  if (!counted) {
    return counted.error();
  }
  const auto other = counted->number(0, 1);
  return Members{.count = static_cast<std::uint32_t>(std::max<std::int64_t>(counted->number(0, 0), 1)),
                 .other_buckets = other == 0 ? 0 : static_cast<std::uint32_t>(other) - kMembers};
}

Result<std::vector<std::uint32_t>> PostgresLocks::lock(std::span<const std::uint32_t> buckets, Deadline deadline) {
  const auto got = connection_->run({"SELECT b FROM unnest($2::int[]) AS b WHERE pg_try_advisory_lock($1::int, b)",
                                     {std::to_string(space_), array_of(buckets)}},
                                    deadline);
  if (!got) {
    return got.error();
  }
  std::vector<std::uint32_t> locked;
  locked.reserve(static_cast<std::size_t>(got->rows()));
  for (int row = 0; row < got->rows(); ++row) {
    locked.push_back(static_cast<std::uint32_t>(got->number(row, 0)));
  }
  return locked;
}

Result<void> PostgresLocks::unlock(std::span<const std::uint32_t> buckets, Deadline deadline) {
  const auto done = connection_->run({"SELECT count(pg_advisory_unlock($1::int, b)) FROM unnest($2::int[]) AS b",
                                      {std::to_string(space_), array_of(buckets)}},
                                     deadline);
  return done ? Result<void>() : done.error();
}

Result<std::vector<MarkStatus>> PostgresLocks::mark(std::span<const Mark> marks, Deadline deadline) {
  return write_marks(*connection_, sql_, marks, nullptr, deadline);
}

}  // namespace sluice::queue::outbox::postgres
