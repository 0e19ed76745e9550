#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <unordered_set>
#include <utility>

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

Result<void> set_up(Connection& connection, const std::vector<std::pair<std::string, std::string>>& more,
                    Deadline deadline) {
  std::vector<std::pair<std::string, std::string>> all{
      {"timezone", "UTC"}, {"datestyle", "ISO"}, {"statement_timeout", "60s"}, {"lock_timeout", "5s"}};
  all.insert(all.end(), more.begin(), more.end());
  Statement statement{"SELECT "};
  for (const auto& [name, value] : all) {
    statement.sql += (statement.parameters.empty() ? "" : ", ") + std::string("set_config('") + name + "', $" +
                     std::to_string(statement.parameters.size() + 1) + ", false)";
    statement.parameters.emplace_back(value);
  }
  const auto done = connection.run(statement, deadline);
  return done ? Result<void>() : done.error();
}

Result<std::unique_ptr<LockSession>> PostgresLocks::open(const Settings& settings, const TableSql& sql,
                                                         Deadline deadline) {
  auto connection = Connection::open(settings.connect, deadline);
  if (!connection) {
    return connection.error();
  }
  std::vector<std::pair<std::string, std::string>> more;
  if ((*connection)->server_version() >= kIdleLimitSince) {
    const auto lease = std::chrono::duration_cast<std::chrono::milliseconds>(settings.connect.lease);
    more.emplace_back("idle_session_timeout", std::to_string(lease.count()));
  }
  if (auto done = set_up(**connection, more, deadline); !done) {
    return done.error();
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
  std::vector<Mark> sent;
  std::vector<Mark> failed;
  for (const Mark& mark : marks) {
    (mark.kind == MarkKind::sent ? sent : failed).push_back(mark);
  }
  std::vector<Statement> statements;
  if (!sent.empty()) {
    statements.push_back(sql_.mark_sent(sent));
  }
  if (!failed.empty()) {
    statements.push_back(sql_.mark_failed(failed));
  }
  const auto answers = connection_->run_together(statements, deadline);
  if (!answers) {
    return answers.error();
  }
  std::unordered_set<std::int64_t> written;
  for (const Answer& answer : *answers) {
    for (int row = 0; row < answer.rows(); ++row) {
      written.insert(answer.number(row, 0));
    }
  }
  std::vector<MarkStatus> statuses;
  statuses.reserve(marks.size());
  std::transform(marks.begin(), marks.end(), std::back_inserter(statuses),
                 [&](const Mark& mark) { return written.contains(mark.id) ? MarkStatus::written : MarkStatus::gone; });
  if (written.size() < marks.size()) {
    if (auto told = tell_pending(marks, statuses, deadline); !told) {
      return told.error();
    }
  }
  return statuses;
}

// What was not written and is still to be marked, somebody else has locked.
Result<void> PostgresLocks::tell_pending(std::span<const Mark> marks, std::vector<MarkStatus>& statuses,
                                         Deadline deadline) {
  std::vector<std::int64_t> missing;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (statuses[i] != MarkStatus::written) {
      missing.push_back(marks[i].id);
    }
  }
  const auto pending = connection_->run(sql_.still_pending(missing), deadline);
  if (!pending) {
    // What the transaction wrote is committed; of the rest nothing is known.
    return Error(pending.error().code() == ErrorCode::unavailable ? ErrorCode::unknown_outcome : pending.error().code(),
                 pending.error().message());
  }
  std::unordered_map<std::int64_t, std::uint32_t> retries;
  for (int row = 0; row < pending->rows(); ++row) {
    retries[pending->number(row, 0)] = static_cast<std::uint32_t>(pending->number(row, 1));
  }
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const auto found = statuses[i] == MarkStatus::written ? retries.end() : retries.find(marks[i].id);
    if (found != retries.end() && marks[i].only_if.value_or(found->second) == found->second) {
      statuses[i] = MarkStatus::locked;
    }
  }
  return {};
}

}  // namespace sluice::queue::outbox::postgres
