#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/hash_rows.hpp"

namespace sluice::queue::sqlite {

/// The part of the index of keys that lies in the file: runs, each written once. A run has 2^bits pages, a page the
/// entries whose hash begins with its number: so a look-up goes straight to its page, nothing is sorted, and runs are
/// merged piece by piece in the order of the hash. An entry says in which batch a key of this hash was recorded, and
/// counts only as long as that is there.
///
/// How far a merge has come stands in the file too, so that any process goes on with it. Below that the pages of its
/// sources are gone, and its own are there. Of one connection, used inside its transactions.
class KeyRuns {
 public:
  explicit KeyRuns(Connection& connection);

  /// Learns which runs there are: before anything else, and again when somebody else has written.
  void load();
  /// Entries in all of them.
  std::int64_t entries() const;
  /// Adds the batches that have this hash, in no order.
  void find(std::int64_t hash, std::vector<std::int64_t>& seqs);
  /// Calls `use` with each hash in this range, and with some beside it.
  template <typename Use>
  void hashes(std::int64_t from, std::int64_t to, Use use) {
    for (const Run& run : runs_) {
      gathered_.clear();
      gather(run, from, to - 1);
      for (const IdEntry& entry : gathered_) {
        use(entry.hash);
      }
    }
  }

  /// Makes a run of these, which are all that lead to batches up to `last` and are in no run yet.
  void write(std::span<const IdEntry> entries, std::int64_t last);
  /// What is known where runs are tidied up.
  struct Tidy {
    std::int64_t oldest = 0;  ///< the first batch that is there
    std::int64_t piece = 0;   ///< entries to look at now, about
    bool sweep = false;       ///< there are so many entries without a batch that all are to be looked at
  };
  /// Goes on with a merge, or begins one that is due: of four runs of about one size, or of all when they are swept.
  void merge_some(const Tidy& tidy);

 private:
  struct Run {
    std::int64_t number;
    std::int64_t bits;
    std::int64_t entries;
    std::int64_t last;  ///< the youngest batch that an entry leads to
    // While it is being made: of the runs from one to before another, of each the hashes below this one.
    std::int64_t from;
    std::int64_t to;
    std::int64_t merged_to;
    bool sweeps;

    bool merging() const { return merged_to < kHashEnd; }
    bool is_source(const Run& run) const { return merging() && from <= run.number && run.number < to; }
    std::int64_t page_of(std::int64_t hash) const { return hash >> (kHashBits - bits); }
    std::int64_t id_of(std::int64_t hash) const;
  };

  bool has(const Run& run, std::int64_t hash) const;
  /// Adds to `gathered_` all entries of the pages that hold these two hashes, and of those between.
  void gather(const Run& run, std::int64_t first_hash, std::int64_t last_hash);
  void drop_dead(const Tidy& tidy, bool sweeps);
  void put_pages(const Run& run, std::int64_t first_page, std::int64_t pages, std::span<const IdEntry> entries);
  bool begin_merge(const Tidy& tidy);
  void merge_range(Run& target, std::int64_t from, std::int64_t to, const Tidy& tidy);
  void end_merge();
  void save(const Run& run);

  Statement runs_read_;
  Statement run_write_;
  Statement run_delete_;
  Statement page_;
  Statement pages_;
  Statement page_insert_;
  Statement pages_delete_;
  Statement batch_;

  std::vector<Run> runs_;  ///< by number
  // Scratch.
  std::vector<IdEntry> gathered_;
  std::vector<std::size_t> ends_;
  std::string bytes_;
};

}  // namespace sluice::queue::sqlite
