#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/id_index.hpp"

namespace sluice::queue::sqlite {

/// What one transaction changes in the counters of the file. They are read at most once and written at most once in it,
/// and let `stats` know how many messages there are without counting them.
class Tally {
 public:
  explicit Tally(Connection& connection);

  /// At the start of each transaction.
  void begin();
  /// Writes what has changed; before the commit.
  void finish();

  void add(std::int64_t half, std::int64_t messages);
  /// A seq that was never used before.
  std::int64_t next_seq();
  /// What has been counted so far; `back_to` forgets what came after it, as a savepoint that is rolled back does.
  struct Mark;
  Mark mark();
  void back_to(const Mark& mark);
  void index_ids(const NewIds& entries);
  std::vector<std::int64_t> known_hashes(std::span<const std::int64_t> hashes) { return ids_.known(hashes); }

 private:
  struct Change {
    std::int64_t half;
    std::int64_t messages;
  };
  void read();
  void write_halves();

  Statement read_;
  Statement write_;
  Statement live_;
  Statement half_;
  IdIndex ids_;
  std::vector<Change> changes_;
  bool read_done_ = false;
  std::int64_t next_seq_ = 0;
  std::int64_t new_ids_ = 0;
  std::int64_t old_ids_ = 0;
};

struct Tally::Mark {
  std::vector<Change> changes;
  std::int64_t new_ids = 0;
  std::int64_t old_ids = 0;
};

}  // namespace sluice::queue::sqlite
