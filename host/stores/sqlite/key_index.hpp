#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/entry_table.hpp"
#include "host/stores/sqlite/hash_filter.hpp"
#include "host/stores/sqlite/key_runs.hpp"

namespace sluice::queue::sqlite {

/// When the index of keys is written and tidied up. The product uses the defaults.
struct KeyIndexLimits {
  std::size_t tail = 65'536;     ///< records that are known in memory alone
  std::int64_t piece = 2'048;    ///< entries that one transaction tidies up, at least
  std::int64_t stale = 500'000;  ///< entries that may lie about beyond four for each record
};

/// Finds the batches of records by the hash of a key. The youngest records, the tail, are known by each process in
/// memory; when they are many they are written as one of the runs of the file. Most keys that are asked for are new,
/// which a filter tells without a look at either; of a file that had records already it learns the runs piece by piece.
/// Of one connection, used inside its transactions; entries are never removed with their record, and one counts only as
/// long as its record is there.
class KeyIndex {
 public:
  explicit KeyIndex(Connection& connection, const KeyIndexLimits& limits = {});

  /// At the start of each transaction.
  void begin();
  /// Before anything is asked or added: brings the tail to what the file has, where another process has written, or
  /// this one's last transaction did not become true.
  void sync();
  /// Before the commit.
  void finish();

  /// The number of a new batch.
  std::int64_t new_batch();
  /// A record of this batch, which is found from now on.
  void add(std::int64_t hash, std::int64_t seq);
  /// Records are gone.
  void removed(std::int64_t count) {
    records_ = records_ > count ? records_ - count : 0;
    changed_ = true;
  }
  /// Numbers of batches that may have a record of this hash, in no order.
  void find(std::int64_t hash, std::vector<std::int64_t>& seqs);
  /// Before these are asked for by `may_find`.
  void prepare(std::span<const std::int64_t> hashes);
  /// False: `find` finds nothing.
  bool may_find(std::int64_t hash) const { return hash >= learnt_to_ || filter_.may_have(hash); }

  /// For a savepoint that is set right after it; and once it was rolled back.
  struct Mark {
    bool synced = false;
    std::size_t added = 0;
    std::int64_t records = 0;
  };
  Mark mark() const { return {synced_, added_.size(), records_}; }
  void back_to(const Mark& mark);

 private:
  void catch_up();
  void forget_indexed();
  /// Has the filter know the next part of the runs.
  void learn_some(std::size_t asked);
  /// One that can be found from now on, in memory.
  void remember(const IdEntry& entry);
  void write_tail();
  void tidy_up();
  std::int64_t oldest();

  Connection& connection_;
  const KeyIndexLimits limits_;
  KeyRuns runs_;
  Statement tail_batches_;
  Statement oldest_;
  Statement counters_read_;
  Statement counters_write_;
  SeededRandom random_;

  EntryTable tail_;  ///< all records after `tail_from_`
  std::int64_t tail_from_ = 0;
  // Has all of the tail, and what the runs have of hashes below this one.
  HashFilter filter_;
  std::int64_t learnt_to_ = 0;
  std::vector<IdEntry> last_;  ///< what the last transaction that changed anything has added
  // What this process believes of the file: everything before `true_to_` for certain, and all of it while the file has
  // this stamp.
  std::int64_t true_to_ = 0;
  std::int64_t stamp_ = 0;

  // Of the current transaction.
  bool synced_ = false;
  bool changed_ = false;
  std::vector<IdEntry> added_;
  std::vector<IdEntry> writing_;  ///< scratch
  std::int64_t next_seq_ = 0;
  std::int64_t indexed_ = 0;  ///< batches up to this one are in runs
  std::int64_t records_ = 0;
};

}  // namespace sluice::queue::sqlite
