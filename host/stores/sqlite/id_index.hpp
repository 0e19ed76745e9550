#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/hash_rows.hpp"

namespace sluice::queue::sqlite {

/// Finds messages by their id, through a hash. Of one connection, used inside its transactions.
class IdLookup {
 public:
  explicit IdLookup(Connection& connection);

  /// Of a UUID of version 7 it begins with its time, so that those that came together lie together.
  static std::int64_t hash(std::int64_t queue, std::string_view id);
  static bool has_time(std::string_view id);
  /// The message's seq.
  std::optional<std::int64_t> find(std::int64_t queue, std::string_view id);

 private:
  Statement find_;
};

/// When the index of ids is tidied up. The product uses the defaults.
struct IdIndexLimits {
  /// `ids_fresh` is so small that its pages stay in the cache, and so large that one piece of it shares pages in `ids`.
  /// The larger it is, the more of its own pages a batch writes: so it holds fewer than these where batches are small
  /// beside what `ids` has.
  std::int64_t fresh = 65'536;
  /// Entries that one transaction moves or looks at, at least; it is twice as many as it has added itself, so that a
  /// flood is kept up with.
  std::int64_t piece = 2'048;
  /// Entries (20 bytes each) that may lie about in `ids` beyond four for each message.
  std::int64_t stale = 500'000;
  /// An empty file with more entries than these is cleared at one go, which writes few pages.
  std::int64_t clear = 16'384;
  /// It always may hold these.
  std::int64_t least_fresh = 8'192;
};

/// Entries that are added together, each kind best in order of its hash, so that those of one page come together.
struct NewIds {
  std::span<const IdEntry> anywhere;
  std::span<const IdEntry> with_time;  ///< as `IdLookup::has_time` tells
};

/// Keeps the index of ids: entries are added with their messages and swept long after them, see schema_tables.hpp.
class IdIndex {
 public:
  explicit IdIndex(Connection& connection, const IdIndexLimits& limits = {});

  /// Those with a time go where they stay: they write few pages wherever they are.
  void add(const NewIds& entries);
  /// Those of `hashes` that there are entries with: of that id, of one whose message is gone, or of another by chance.
  /// In order. Best given so too.
  std::vector<std::int64_t> known(std::span<const std::int64_t> hashes);
  /// Called once in each transaction that writes messages, with the counters that it has read: a bounded piece of the
  /// work that is due. `live` is the number of messages in the whole file.
  void sweep(std::int64_t& new_ids, std::int64_t& old_ids, std::int64_t live);

 private:
  void settle_piece(std::int64_t& new_ids, std::int64_t& old_ids);
  void sweep_piece(std::int64_t& old_ids);
  /// The hash behind a piece of the entries that `behind` goes through, from that hash on.
  std::int64_t end_of_piece(Statement& behind, std::int64_t from, std::int64_t added) const;
  std::int64_t oldest();

  std::int64_t most_fresh(std::int64_t old_ids) const;

  Connection& connection_;
  const IdIndexLimits limits_;
  EntryRows adding_;
  Statement add_new_;
  Statement add_old_;
  HashRows asking_;
  Statement known_;
  Statement oldest_;
  Statement behind_new_;
  Statement behind_old_;
  Statement keep_;
  Statement drop_new_;
  Statement drop_old_;
  // Since the last sweep.
  std::int64_t added_new_ = 0;
  std::int64_t added_old_ = 0;
  std::int64_t usual_ = 0;  ///< what one transaction adds to `ids_fresh` of late
  // Where the next piece begins. Each process has its own; it does not matter where one starts.
  std::int64_t new_from_ = 0;
  std::int64_t old_from_ = 0;
};

}  // namespace sluice::queue::sqlite
