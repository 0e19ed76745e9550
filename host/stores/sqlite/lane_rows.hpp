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
  std::optional<std::int64_t> head;
  std::int64_t head_sent = 0;
  std::int64_t turn = 0;    ///< the head's place, while it can be claimed
  std::int64_t others = 0;  ///< messages beside the head that keep the lane from offering anything
  Line::Ends ends;

  /// Such a lane has no row.
  bool empty() const { return !head && others == 0 && !ends.first; }
  friend bool operator==(const LaneRow&, const LaneRow&) = default;
};

/// The rows of the table `lanes`, and of `lane_numbers`, by which they are found. Works inside a transaction of its
/// connection. What was read is remembered for as long as nobody else writes the file.
///
/// Between `gather` and `flush` they are read with one statement and written with one, however many they are: the table
/// is looked at by nobody else meanwhile, and no savepoint may be made.
class LaneRows {
 public:
  explicit LaneRows(Connection& connection);

  /// At the start of each transaction.
  void begin();
  /// A savepoint was rolled back: what was read or written within it may not hold.
  void forget();
  /// From here on, what is stored is gathered; these lanes, of one half, are read at once.
  void gather(std::int64_t half, std::span<const std::int64_t> lanes);
  void flush();
  bool gathers() const { return gathers_; }
  /// Where the chains of these lanes, which were read, begin.
  std::vector<std::int64_t> first_in_line(std::span<const std::int64_t> lanes) const;

  LaneRow load(std::int64_t half, std::int64_t lane);
  void store(const LaneRow& before, const LaneRow& after);
  /// All of a half.
  void drop(std::int64_t half);

 private:
  struct Held {
    LaneRow row;
    std::int64_t number = 0;  ///< of its row; 0: it has none
    bool changed = false;
  };
  /// What is stored at once, for its statement to read.
  class Rows final : public MemoryTable {
   public:
    explicit Rows(Connection& connection)
        : MemoryTable(connection, "sluice_storing_lanes",
                      "number, lane, half, head, head_sent, turn, others, first, last, last_sent") {}
    std::size_t rows() const override { return list.size(); }
    void column(std::size_t row, int column, ColumnValue value) const override;

    std::vector<const Held*> list;
  };
  static Held read(const Statement& row, std::int64_t half, std::int64_t lane);
  /// Before anything that is remembered is used in a transaction.
  void look();
  std::int64_t next_number();
  void write_changed();
  void drop_empty();
  void number_new();

  Connection& connection_;
  HashRows asking_;
  EntryRows numbering_;
  Rows storing_;
  Statement file_version_;
  Statement last_number_;
  Statement load_;
  Statement load_all_;
  Statement store_all_;
  Statement number_all_;
  Statement drop_run_;
  Statement drop_numbers_;
  bool gathers_ = false;
  std::unordered_map<std::int64_t, Held> held_;
  std::vector<std::int64_t> changed_;  ///< still to be written
  std::int64_t next_number_ = 0;       ///< 0: not known
  // For what is remembered: it is true while the file has this version, and nothing was rolled back.
  std::int64_t version_ = 0;
  bool looked_ = false;
  bool touched_ = false;  ///< something was learnt or written in this transaction, before which there were so many
  std::int64_t commits_ = 0;
  // Scratch.
  std::vector<std::int64_t> asked_;
  std::vector<Held*> rows_;
  std::vector<IdEntry> numbers_;
};

}  // namespace sluice::queue::sqlite
