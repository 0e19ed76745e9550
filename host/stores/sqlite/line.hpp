#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/hash_rows.hpp"
#include "host/stores/sqlite/places.hpp"

namespace sluice::queue::sqlite {

/// What waits behind the heads of lanes: for each lane a chain in the table `chains`, in the order of sending. Works
/// inside a transaction of its connection.
///
/// The row of a message that was taken out at the front stays where it is until the message has gone: to delete it
/// would write a page for each. It counts for nothing: its message is the head of its lane, in flight, or buried.
class Line {
 public:
  /// Where a lane's chain begins and ends; its lane keeps them.
  struct Ends {
    std::optional<std::int64_t> first;
    std::optional<std::int64_t> last;
    std::int64_t last_sent = 0;
    friend bool operator==(const Ends&, const Ends&) = default;
  };
  struct Link {
    Place place;
    bool suspected = false;
    std::optional<std::int64_t> before;
    std::optional<std::int64_t> next;
  };

  explicit Line(Connection& connection);

  /// At the start of each transaction.
  void begin();
  // Between the two, what follows is gathered. No savepoint may be made meanwhile. `firsts` are about to be taken out,
  // and read at once.
  void gather(std::span<const std::int64_t> firsts);
  void flush();

  void insert(std::int64_t half, Ends& ends, const Place& place, bool suspected);
  /// The same of one that was the head: before all that are younger, also where a clock that was set back has put such
  /// as have an earlier time behind them.
  void insert_first(std::int64_t half, Ends& ends, const Place& place, bool suspected);
  void remove(Ends& ends, std::int64_t seq);
  /// A message that is in no chain has left its lane: the row that it may have had goes.
  void forget(std::int64_t seq) { link_delete_.bind(seq).run(); }
  /// Takes out the first one; nothing: nobody waits.
  std::optional<Link> pop(Ends& ends);
  /// `next` is put down behind `before` by the caller. Gathered too: until `flush` nobody else looks.
  void follow(std::int64_t before, std::int64_t next);

 private:
  std::optional<Link> link(std::int64_t seq);
  void put(std::int64_t half, Ends& ends, const Link& one);
  /// What was read ahead may be otherwise by now.
  void forget_ahead() { ahead_.clear(); }

  HashRows asking_;
  EntryRows following_;
  Statement link_all_;
  Statement link_;
  Statement link_insert_;
  Statement link_delete_;
  Statement link_next_;
  Statement follow_all_;
  Statement link_before_;
  std::vector<IdEntry> followed_;                 ///< of each its seq, and that of the next one, still to be written
  std::unordered_map<std::int64_t, Link> ahead_;  ///< links that were read before they are asked for
};

}  // namespace sluice::queue::sqlite
