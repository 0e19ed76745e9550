#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/sender.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/deliveries.hpp"
#include "host/stores/sqlite/id_index.hpp"
#include "host/stores/sqlite/lanes.hpp"
#include "host/stores/sqlite/memory_table.hpp"
#include "host/stores/sqlite/send_marks.hpp"
#include "host/stores/sqlite/tally.hpp"

namespace sluice::queue::sqlite {

/// Puts down what is sent, a batch with a few statements, however many messages it has. Works inside a transaction of
/// its connection.
class NewMessages {
 public:
  NewMessages(Connection& connection, Tally& tally, Deliveries& deliveries, IdLookup& ids, Lanes& lanes);

  /// One that is to be put down. Borrowed until then.
  struct Arrival {
    const NewMessage* message;
    SendResult* result;
    bool made_id;  ///< its id was made up for it: it is taken for granted that nobody else has that one

    /// That of the result, where the message came without one.
    const std::string& id() const { return message->id.empty() ? result->id : message->id; }
  };

  /// Sets the status of each result to sent, duplicate_id, or deduplicated with the first message's id; results that
  /// have failed already are left out. A message with a deduplication id or unique key has statements of its own.
  void insert(std::int64_t queue, std::span<const Arrival> arrivals, WallTime now);

 private:
  struct Row {
    Arrival arrival;
    std::int64_t seq;
    WallTime sent_at;
    std::int64_t place_half = 0;  ///< where it lies in `ready`; 0: not there
    std::int64_t lane = 0;        ///< its lane; 0: none
    Lanes::Newcomer newcomer{};   ///< with a lane
  };
  /// A row's place in the order of hashes.
  struct Key {
    std::int64_t hash;
    std::size_t row;
    bool has_time;
  };
  /// What is inserted, for its statements to read.
  class Rows final : public MemoryTable {
   public:
    explicit Rows(Connection& connection)
        : MemoryTable(connection, "sluice_sending",
                      "seq, sent_at, place_half, id, content_type, message_group, attributes, body, "
                      "priority, in_line, before, next") {}
    std::size_t rows() const override { return list.size(); }
    void column(std::size_t row, int column, ColumnValue value) const override;

    std::vector<Row> list;
  };

  void insert_plain(std::int64_t queue, std::span<const Arrival> arrivals, WallTime now);
  void insert_keyed(std::int64_t queue, const Arrival& arrival, WallTime now);
  void gather(std::int64_t queue, std::span<const Arrival> arrivals, WallTime now);
  void find_duplicates(std::int64_t queue);
  std::vector<std::int64_t> known_hashes();
  bool came_before(std::size_t key, std::size_t first_of_hash) const;
  void number();
  void find_places(std::int64_t half);
  void write(std::int64_t half, WallTime now);
  void find_line(std::int64_t half);

  Tally& tally_;
  Deliveries& deliveries_;
  IdLookup& ids_;
  SendMarks marks_;
  Lanes& lanes_;
  Rows rows_;
  Statement insert_;
  Statement insert_prioritised_;
  Statement insert_ready_;
  Statement insert_line_;
  // Of the current batch; members so that their memory is there for the next one.
  std::vector<Key> keys_;
  std::vector<std::int64_t> asked_;
  std::vector<IdEntry> entries_;
  std::vector<IdEntry> entries_with_time_;
  bool lines_ = false;       ///< some lie in a line
  bool priorities_ = false;  ///< some have another than the normal one
};

}  // namespace sluice::queue::sqlite
