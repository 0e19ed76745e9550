#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "host/stores/sqlite/connection.hpp"

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

  /// What has been counted so far, by half; `back_to` forgets what came after it, as a savepoint that is rolled back
  /// does. A seq that was given out meanwhile stays used.
  using Mark = std::vector<std::pair<std::int64_t, std::int64_t>>;
  const Mark& mark() const { return changes_; }
  void back_to(const Mark& mark) { changes_ = mark; }

 private:
  Statement read_;
  Statement write_;
  Statement half_;
  Mark changes_;
  std::int64_t next_seq_ = 0;  ///< 0: not read
};

}  // namespace sluice::queue::sqlite
