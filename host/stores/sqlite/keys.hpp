#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/idempotency.hpp"
#include "host/queue/source.hpp"
#include "host/stores/sqlite/connection.hpp"

namespace sluice::queue::sqlite {

/// The idempotency keys of a file: marks of those in progress, which become records when they are done. Works inside a
/// transaction of its connection. One whose time has passed counts for nothing, and is swept by those who write.
class Keys {
 public:
  explicit Keys(Connection& connection) : connection_(connection) {}

  /// At the start of each transaction, and before its commit.
  void begin() { written_ = 0; }
  void finish();

  /// As IdempotencyKeys::begin.
  std::vector<KeyAnswer> claim(std::int64_t queue, std::span<const KeyClaim> claims, WallTime now);
  /// Sets of each delivery whether the job has a record of its message's own id.
  void look_up(std::int64_t queue, const std::string& job, std::span<Delivery> deliveries, WallTime now);
  /// As IdempotencyKeys::release.
  void release(std::int64_t queue, std::span<const KeyClaim> claims);
  /// Whether it may be put down that the key is done: unless another message has it by now, in progress or done.
  bool may_record(std::int64_t queue, const KeyRecord& record, std::string_view owner, WallTime now);
  /// Puts that down, in place of the owner's mark.
  void put_record(std::int64_t queue, const KeyRecord& record, std::string_view owner, WallTime now);

  /// True when there was one, done or in progress, whose time had not passed.
  bool forget(std::int64_t queue, const std::string& job, const std::string& key, WallTime now);

 private:
  std::optional<std::int64_t> find_job(std::int64_t queue, const std::string& job) {
    return job_find_.bind(queue, std::string_view(job)).only();
  }
  std::int64_t make_job(std::int64_t queue, const std::string& job);
  /// What stands of it, without the name of the job.
  std::optional<StoredKey> find(std::int64_t job, std::string_view key);
  KeyAnswer claim(std::optional<std::int64_t> job, const KeyClaim& claim, WallTime now);

  Connection& connection_;
  Statement job_find_{connection_, "SELECT id FROM sluice_key_jobs WHERE queue = ?1 AND job = ?2"};
  Statement job_insert_{connection_, "INSERT INTO sluice_key_jobs (queue, job) VALUES (?1, ?2)"};
  Statement find_{connection_, "SELECT key, done, owner, until, result FROM sluice_keys WHERE job = ?1 AND key = ?2"};
  Statement put_{connection_, "INSERT OR REPLACE INTO sluice_keys VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"};
  Statement release_{connection_,
                     "DELETE FROM sluice_keys WHERE job = ?1 AND key = ?2 AND owner IS ?3 AND fence = ?4 AND NOT done"};
  Statement drop_{connection_, "DELETE FROM sluice_keys WHERE job = ?1 AND key = ?2"};
  Statement expire_{connection_,
                    "DELETE FROM sluice_keys WHERE (job, key) IN "
                    "(SELECT job, key FROM sluice_keys WHERE until <= ?1 ORDER BY until LIMIT ?2)"};
  std::int64_t written_ = 0;  ///< in this transaction
  WallTime now_{};
};

/// The same for operators, on a connection that reads. Those whose time has passed by `now` are left out.
KeyPage list_keys(Connection& connection, std::int64_t queue, const std::string& job, std::size_t limit,
                  const std::string& cursor, WallTime now);
std::optional<StoredKey> find_key(Connection& connection, std::int64_t queue, const std::string& job,
                                  const std::string& key, WallTime now);

}  // namespace sluice::queue::sqlite
