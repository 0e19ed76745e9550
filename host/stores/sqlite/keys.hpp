#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/delivery.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/idempotency.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/key_index.hpp"

namespace sluice::queue::sqlite {

/// The idempotency keys of a file: marks of those in progress, and records of those that are done. Works inside a
/// transaction of its connection. One whose time has passed counts for nothing, and is swept later.
class Keys {
 public:
  explicit Keys(Connection& connection, const KeyIndexLimits& limits = {});

  /// At the start of each transaction, and before its commit.
  void begin();
  void finish();

  /// As IdempotencyKeys::begin.
  std::vector<KeyAnswer> claim(std::int64_t queue, std::span<const KeyClaim> claims, WallTime now);
  /// Sets of each delivery whether the job has a record of its message's own id.
  void look_up(std::int64_t queue, const std::string& job, std::span<Delivery> deliveries, WallTime now);
  /// As IdempotencyKeys::release.
  void release(std::int64_t queue, std::span<const KeyClaim> claims);
  /// Puts down that the key is done, in place of the owner's mark. False, and nothing is written: another message has
  /// the key by now, in progress or done.
  bool record(std::int64_t queue, const KeyRecord& record, std::string_view owner, WallTime now) {
    if (!may_record(queue, record, owner, now)) {
      return false;
    }
    put_record(queue, record, owner, now);
    return true;
  }
  // The same in two steps, for whoever has to know before he writes anything else.
  bool may_record(std::int64_t queue, const KeyRecord& record, std::string_view owner, WallTime now);
  void put_record(std::int64_t queue, const KeyRecord& record, std::string_view owner, WallTime now);
  /// Records are gathered, so that those of one job that end at one time come into one row. This writes what there is,
  /// before any savepoint is made or released and before the end of the call that gave them.
  void flush_records();

  /// How far this transaction has come, for a savepoint that is set right after it.
  struct Mark {
    KeyIndex::Mark index;
    std::int64_t recorded = 0;
  };
  Mark mark() const { return {index_.mark(), recorded_}; }
  /// The savepoint was rolled back.
  void back_to(const Mark& mark);

  /// True when there was one, done or in progress, whose time had not passed.
  bool forget(std::int64_t queue, const std::string& job, const std::string& key, WallTime now);

 private:
  /// Records that are gathered for one row.
  struct Batch {
    std::int64_t seq = 0;
    std::int64_t job = 0;
    std::int64_t until = 0;
    std::int64_t count = 0;
    std::string content;
  };
  struct Done {
    std::int64_t seq = 0;
    std::string owner;
    std::string result;
    std::int64_t until = 0;
    // Of its batch, without this record.
    std::int64_t others = 0;
    std::string rest;
  };
  enum class Want { answer, removal };
  struct KnownJob {
    std::int64_t queue;
    std::string name;
    std::int64_t number;
  };

  std::optional<std::int64_t> find_job(std::int64_t queue, const std::string& job);
  std::int64_t make_job(std::int64_t queue, const std::string& job);
  /// Nothing where it is not done; of hashes that were prepared.
  std::optional<KeyAnswer> answer_of_done(std::int64_t job, std::int64_t hash, std::string_view key, WallTime now);
  std::optional<Done> find_done(std::int64_t job, std::int64_t hash, std::string_view key, WallTime now,
                                Want want = Want::answer);
  KeyAnswer put_mark(std::int64_t job, std::int64_t hash, const KeyClaim& claim, WallTime now);
  void sweep_records();
  /// Deletes the expired ones of the batches after `from` that have about `count` records; moves `from`. True: there
  /// were some.
  bool sweep_some(std::int64_t& from, std::int64_t count);

  KeyIndex index_;
  Statement job_find_;
  Statement job_insert_;
  Statement done_find_;
  Statement done_insert_;
  Statement done_delete_;
  Statement done_change_;
  Statement done_some_;
  Statement mark_write_;
  Statement mark_find_;
  Statement mark_release_;
  Statement mark_drop_;
  Statement marks_expire_;

  // Of the current transaction.
  std::vector<KnownJob> jobs_;
  WallTime now_{};
  std::int64_t recorded_ = 0;
  std::int64_t marked_ = 0;
  Batch batch_;                     ///< the next row; without records there is none
  std::vector<std::int64_t> seqs_;  ///< scratch
  std::vector<std::int64_t> expired_;
  std::vector<std::int64_t> hashes_;
  // Where the next look for expired records begins. Each process has its own.
  std::int64_t roam_from_ = 0;
};

/// The same for operators, on a connection that reads. Those whose time has passed by `now` are left out.
KeyPage list_keys(Connection& connection, std::int64_t queue, const std::string& job, std::size_t limit,
                  const std::string& cursor, WallTime now);
std::optional<StoredKey> find_key(Connection& connection, std::int64_t queue, const std::string& job,
                                  const std::string& key, WallTime now);

}  // namespace sluice::queue::sqlite
