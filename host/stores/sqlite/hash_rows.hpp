#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/memory_table.hpp"

/// What indexes over hashes have their statements read, many at a time.
namespace sluice::queue::sqlite {

/// Hashes of ids and of keys have so many bits; what is behind the last one.
inline constexpr unsigned kHashBits = 48;
inline constexpr std::int64_t kHashEnd = std::int64_t{1} << kHashBits;
/// How wide a range of hashes is that holds about `piece` of so many entries.
inline std::int64_t hash_range_width(std::int64_t entries, std::int64_t piece) {
  return std::max<std::int64_t>(1, kHashEnd / std::max<std::int64_t>(1, entries / piece));
}

struct IdEntry {
  std::int64_t hash = 0;
  std::int64_t seq = 0;
};

/// Entries that are added, as a table of hash and seq.
class EntryRows final : public MemoryTable {
 public:
  EntryRows(Connection& connection, const char* name) : MemoryTable(connection, name, "hash, seq") {}

  /// Runs `add`, which reads the table, with these in it. How many rows it has made.
  std::int64_t put_down(std::span<const IdEntry> entries, Statement& add) {
    entries_ = entries;
    const std::int64_t made = add.run();
    entries_ = {};
    return made;
  }
  /// Calls `use` with each row that `statement` gives, which reads the table, with these in it.
  template <typename Use>
  void each(std::span<const IdEntry> entries, Statement& statement, Use use) {
    entries_ = entries;
    while (statement.row()) {
      use(statement);
    }
    statement.reset();
    entries_ = {};
  }

  std::size_t rows() const override { return entries_.size(); }
  void column(std::size_t row, int column, ColumnValue value) const override {
    value.set(column == 0 ? entries_[row].hash : entries_[row].seq);
  }

 private:
  std::span<const IdEntry> entries_;
};

/// Hashes, or other numbers, that are asked for, as a table of them: a statement for each would cost as much as putting
/// a row down.
class HashRows final : public MemoryTable {
 public:
  HashRows(Connection& connection, const char* name) : MemoryTable(connection, name, "hash") {}

  /// Adds to `found` what `known` gives, which reads the table, with these in it.
  void look_up(std::span<const std::int64_t> hashes, Statement& known, std::vector<std::int64_t>& found) {
    each(hashes, known, [&found](const Statement& row) { found.push_back(row.integer(0)); });
  }

  /// Calls `use` with each row that `statement` gives, which reads the table, with these in it.
  template <typename Use>
  void each(std::span<const std::int64_t> hashes, Statement& statement, Use use) {
    hashes_ = hashes;
    while (statement.row()) {
      use(statement);
    }
    statement.reset();
    hashes_ = {};
  }

  std::size_t rows() const override { return hashes_.size(); }
  void column(std::size_t row, int /*column*/, ColumnValue value) const override { value.set(hashes_[row]); }

 private:
  std::span<const std::int64_t> hashes_;
};

}  // namespace sluice::queue::sqlite
