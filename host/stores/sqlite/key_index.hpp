#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/entry_table.hpp"
#include "host/stores/sqlite/hash_filter.hpp"
#include "host/stores/sqlite/hash_rows.hpp"

namespace sluice::queue::sqlite {

/// When the index of keys is written and tidied up. The product uses the defaults.
struct KeyIndexLimits {
  std::size_t tail = 65'536;     ///< records that are known in memory alone
  std::int64_t piece = 2'048;    ///< entries that one transaction writes or looks at, at least
  std::int64_t stale = 500'000;  ///< entries that may lie about beyond four for each record
};

/// Finds the records of keys by their hash. Inserting into an index over hashes writes about one page for each record;
/// so the youngest records, the tail, are known by each process in memory, and written to `key_hashes` many at a time,
/// in the order of their hash. Most keys that are asked for are new, which a filter tells without a look at either; of
/// a file that had records already it learns the table piece by piece. Of one connection, used inside its transactions;
/// entries are never removed with their record, and one counts only as long as its record is there.
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

  /// The number of a new record, with which it is found from now on.
  std::int64_t add(std::int64_t hash);
  /// A record is gone.
  void removed(std::int64_t count) {
    records_ = records_ > count ? records_ - count : 0;
    changed_ = true;
  }
  /// Numbers of records that may have this hash, in no order.
  void find(std::int64_t hash, std::vector<std::int64_t>& seqs);
  /// Those of `hashes` that `find` may find something for, in order.
  std::vector<std::int64_t> known(std::span<const std::int64_t> hashes);

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
  bool last_became_true();
  void forget_indexed();
  /// Has the filter know the next part of the table, of this many entries or more.
  void learn_some(std::size_t entries);
  /// One that can be found from now on, in memory.
  void remember(const IdEntry& entry);
  void write_some();
  void sweep_some();

  Connection& connection_;
  const KeyIndexLimits limits_;
  EntryRows adding_;
  Statement add_;
  HashRows asking_;
  Statement known_;
  Statement find_;
  Statement some_;
  Statement row_;
  Statement tail_rows_;
  Statement oldest_;
  Statement drop_;
  Statement counters_read_;
  Statement counters_write_;
  SeededRandom random_;

  EntryTable tail_;  ///< all records after `tail_from_`
  std::int64_t tail_from_ = 0;
  // Has all of the tail, and what the table has of hashes below this one.
  HashFilter filter_;
  std::int64_t learnt_to_ = 0;
  std::vector<IdEntry> last_;       ///< what the last transaction that changed anything has added
  std::vector<IdEntry> writing_;    ///< a part of the tail on its way to the table, by hash
  std::size_t written_ = 0;         ///< of these
  std::size_t written_before_ = 0;  ///< before the last transaction that added any
  std::int64_t writing_to_ = 0;     ///< the highest seq of these
  std::int64_t sweep_from_ = 0;
  // What this process believes of the file: everything before `true_to_` for certain, and all of it while the file has
  // this stamp.
  std::int64_t true_to_ = 0;
  std::int64_t stamp_ = 0;

  // Of the current transaction.
  bool synced_ = false;
  bool changed_ = false;
  std::vector<IdEntry> added_;
  std::vector<std::int64_t> asked_;  ///< scratch
  std::int64_t next_seq_ = 0;
  std::int64_t indexed_ = 0;  ///< records up to this one are in the table
  std::int64_t settled_ = 0;  ///< entries in the table
  std::int64_t records_ = 0;
};

}  // namespace sluice::queue::sqlite
