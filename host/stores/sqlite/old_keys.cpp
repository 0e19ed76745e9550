#include "host/stores/sqlite/old_keys.hpp"

#include <string>
#include <vector>

#include "host/stores/sqlite/key_batch.hpp"
#include "host/stores/sqlite/key_runs.hpp"

namespace sluice::queue::sqlite {

namespace {

// Entries in memory until they are a run.
constexpr std::size_t kRunEntries = 1'000'000;

/// Puts down one record after the other, in the order of their making.
class OldKeys {
 public:
  explicit OldKeys(Connection& connection)
      : runs_(connection),
        insert_(connection, "INSERT INTO key_batches VALUES (?1, ?2, ?3, ?4, ?5)"),
        counters_(connection, "UPDATE key_counters SET next_seq = ?1, indexed = ?1 - 1, records = ?2") {}

  void add(std::int64_t job, std::int64_t until, std::string_view key, std::string_view owner,
           std::string_view result) {
    if (job != job_ || until != until_ || !key_fits(content_, key, owner, result)) {
      end_batch();
      job_ = job;
      until_ = until;
    }
    append_key(content_, key, owner, result);
    entries_.push_back({key_hash(job, key), seq_});
    ++count_;
    ++records_;
  }
  void end() {
    end_batch();
    end_run();
    counters_.bind(seq_, records_).run();
  }

 private:
  void end_batch() {
    if (count_ == 0) {
      return;
    }
    insert_.bind(seq_, job_, until_, count_, Blob{content_}).run();
    ++seq_;
    count_ = 0;
    content_.clear();
    if (entries_.size() >= kRunEntries) {
      end_run();
    }
  }
  void end_run() {
    if (!entries_.empty()) {
      runs_.write(entries_, seq_ - 1);
      entries_.clear();
    }
  }

  KeyRuns runs_;
  Statement insert_;
  Statement counters_;
  std::vector<IdEntry> entries_;
  // Of the batch.
  std::int64_t seq_ = 1;
  std::int64_t job_ = 0;
  std::int64_t until_ = 0;
  std::int64_t count_ = 0;
  std::string content_;
  std::int64_t records_ = 0;
};

struct OldMark {
  std::int64_t hash;
  std::int64_t job;
  std::string key;
};

}  // namespace

void rehash_old_marks(Connection& connection) {
  std::vector<OldMark> marks;
  Statement old(connection, "SELECT hash, job, key FROM key_marks");
  while (old.row()) {
    marks.push_back({old.integer(0), old.integer(1), std::string(old.bytes(2))});
  }
  old.reset();
  Statement change(connection, "UPDATE key_marks SET hash = ?4 WHERE hash = ?1 AND job = ?2 AND key = ?3");
  for (const OldMark& mark : marks) {
    change.bind(mark.hash, mark.job, Blob{mark.key}, key_hash(mark.job, mark.key)).run();
  }
}

void batch_old_keys(Connection& connection) {
  OldKeys keys(connection);
  Statement old(connection, "SELECT job, until, key, owner, result FROM old_key_records ORDER BY seq");
  while (old.row()) {
    const std::string_view key = old.bytes(2);
    keys.add(old.integer(0), old.integer(1), key, old.is_null(3) ? key : old.bytes(3), old.bytes(4));
  }
  old.reset();
  keys.end();
}

}  // namespace sluice::queue::sqlite
