#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/hash_rows.hpp"
#include "host/stores/sqlite/line.hpp"
#include "host/stores/sqlite/memory_table.hpp"

namespace sluice::queue::sqlite {

/// A lane as `lanes` has it.
struct LaneRow {
  std::int64_t id = 0;
  std::int64_t half = 0;
  bool stored = false;
  std::optional<std::int64_t> head;
  std::int64_t head_sent = 0;
  std::int64_t turn = 0;    ///< the head's place, while it can be claimed
  std::int64_t others = 0;  ///< messages beside the head that keep the lane from offering anything
  Line::Ends ends;

  /// Such a lane has no row.
  bool empty() const { return !head && others == 0 && !ends.first; }
  friend bool operator==(const LaneRow&, const LaneRow&) = default;
};

/// The rows of the table `lanes`. Works inside a transaction of its connection.
///
/// Between `gather` and `flush` they are read with one statement and written with one, however many they are: the table
/// is looked at by nobody else meanwhile, and no savepoint may be made.
class LaneRows {
 public:
  explicit LaneRows(Connection& connection);

  /// At the start of each transaction.
  void begin();
  /// From here on, what is stored is gathered; these lanes, of one half, are read at once.
  void gather(std::int64_t half, std::span<const std::int64_t> lanes);
  void flush();
  bool gathers() const { return gathers_; }
  /// Where the chains of the lanes that were read begin.
  std::vector<std::int64_t> first_in_line() const;

  LaneRow load(std::int64_t half, std::int64_t lane);
  void store(const LaneRow& before, const LaneRow& after);

 private:
  /// What is stored at once, for its statement to read.
  class Rows final : public MemoryTable {
   public:
    explicit Rows(Connection& connection)
        : MemoryTable(connection, "storing_lanes",
                      "lane, half, head, head_sent, turn, others, first, last, last_sent") {}
    std::size_t rows() const override { return list.size(); }
    void column(std::size_t row, int column, ColumnValue value) const override;

    std::vector<LaneRow> list;
  };
  struct Held {
    LaneRow row;
    bool stored = false;  ///< in the table
    bool changed = false;
  };
  static LaneRow read(const Statement& row, std::int64_t half);

  HashRows asking_;
  Rows storing_;
  Statement load_;
  Statement load_all_;
  Statement update_;
  Statement insert_;
  Statement store_all_;
  Statement drop_;
  bool gathers_ = false;
  std::unordered_map<std::int64_t, Held> held_;  ///< while it gathers
  std::vector<std::int64_t> found_;              ///< scratch
};

}  // namespace sluice::queue::sqlite
