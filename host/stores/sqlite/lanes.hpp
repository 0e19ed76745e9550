#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/source.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/lane_rows.hpp"
#include "host/stores/sqlite/line.hpp"
#include "host/stores/sqlite/places.hpp"
#include "host/stores/sqlite/standing.hpp"

namespace sluice::queue::sqlite {

/// What is kept of a half's order, as `queues.kept` says: one for each half, beginning with the standard one, in two
/// bits; and whether messages of other priorities than the normal one have been there, in the next.
enum class Kept : std::uint8_t { none, group, queue, fair };

/// What these rules ask a half to keep.
Kept kept_for(const ClaimRules& rules);

/// The order within groups. A half of which none is kept costs nothing here.
///
/// The messages of a group are a lane: one of them, its head, lies where it can be claimed, the others in `chains` in
/// their order. The head is offered anew each time, behind the heads that were offered before it, which gives each lane
/// its turn. Where the order is kept strictly, a lane offers nothing while its head is out (in flight, or to be tried
/// again) or while something else holds it. Messages without a group have no lane, unless the whole queue is one.
///
/// Works inside a transaction of its connection.
class Lanes {
 public:
  Lanes(Connection& connection, Places& places);

  /// At the start of each transaction.
  void begin();
  /// A savepoint was rolled back: what was learnt within it may not hold.
  void undone() {
    known_.clear();
    rows_.forget();
  }
  /// When what is offered from here on gets its turn.
  void at(WallTime now) { now_ = now; }
  /// `bits` as `queues.kept` has them.
  void learn(std::int64_t queue, std::int64_t bits);

  Kept kept(std::int64_t half) { return kept_in(bits_of(half), half); }
  static Kept kept_in(std::int64_t bits, std::int64_t half) {
    return static_cast<Kept>((bits >> shift_of(half)) & kMask);
  }
  bool prioritised(std::int64_t half) { return (bits_of(half) & kPrioritised) != 0; }
  /// From here on messages of all priorities are looked for in this queue.
  void prioritise(std::int64_t half);
  /// True: the end of a message of this half may concern a lane.
  bool tracks(std::int64_t half) { return (bits_of(half) & ~kPrioritised) != 0; }
  /// 0: none. `group` as `group_hash` gives it.
  std::int64_t lane_of(std::int64_t half, std::int64_t group);
  /// Where a message without a lane lies in `ready`.
  std::int64_t place_half(const Standing& standing);

  /// From here on the half's order is kept so. Reads and writes all that can be claimed there.
  void keep(std::int64_t half, Kept kept);

  /// A message stands otherwise than before; null: it was not there, or is there no more. Those without a lane are left
  /// out by the caller.
  void change(const Standing* before, const Standing* after);
  /// What becomes of the rows of a message that is done: they are gone, or lie under a tombstone.
  enum class Rest : std::uint8_t { removed, buried };
  /// A message in flight has gone.
  void end(std::int64_t half, std::int64_t lane, std::int64_t seq, Rest rest);
  /// The head was handed out; for a half that gives turns only.
  void claimed(std::int64_t half, std::int64_t lane, std::int64_t seq);
  /// Where a message that is sent comes to lie: set by `grow`.
  struct Newcomer {
    Place place;        ///< its time may become a later one
    bool head = false;  ///< it is the lane's head, to be put into `ready`; the others belong into `chains`
    std::optional<std::int64_t> before{};
    std::optional<std::int64_t> next{};
  };
  /// Messages are sent to a lane; `newcomers` in their order, and their caller puts them down where they are told.
  void grow(std::int64_t half, std::int64_t lane, std::span<Newcomer* const> newcomers);

  // Between `gather` and `flush`, changes of lanes are gathered and then written with few statements; nobody else looks
  // at the tables, and no savepoint may be made meanwhile. Messages of `groups` are about to be settled, ...
  void gather_ends(std::int64_t half, std::span<const std::int64_t> groups);
  /// ... or messages to these lanes sent.
  void gather_growth(std::int64_t half, std::span<const std::int64_t> lanes) { rows_.gather(half, lanes); }
  void flush();

  /// The lane of this message stays where it is until `let_go`.
  void hold(const Standing& head);
  /// The message was removed, or has left its half. Does nothing for one that holds no lane.
  void let_go(std::int64_t seq);
  /// The sent_at that a message had which holds its lane.
  std::optional<WallTime> held_place(std::int64_t seq);

  /// Whether a lane of this half has offered something since it was asked last.
  bool take_offered(std::int64_t half);

  static constexpr std::int64_t kPrioritised = 16;

 private:
  using Lane = LaneRow;
  void take(Lane& lane, const Standing& standing);
  /// `was_head`: it comes back where it was, before all that wait behind it.
  void give(Lane& lane, const Standing& standing, bool was_head = false);
  void balance(Lane& lane, const std::optional<Place>& came);
  void offer(Lane& lane, std::optional<std::int64_t> turn);
  /// Puts the head back into line where it can be claimed; false: it is out.
  bool withdraw(Lane& lane);
  static constexpr std::int64_t kMask = 3;
  static int shift_of(std::int64_t half) { return (half & 1) == 0 ? 0 : 2; }
  std::int64_t bits_of(std::int64_t half);
  void write_bits(std::int64_t half, std::int64_t bits);

  // Of `keep`.
  struct Waiting {
    Place place;
    std::int64_t lane;
    std::int64_t place_half;
    bool suspected;
  };
  std::vector<Waiting> gather(std::int64_t half);
  void hold_back(std::int64_t half, std::map<std::int64_t, Lane>& lanes);
  static Lane& lane_in(std::map<std::int64_t, Lane>& lanes, std::int64_t half, std::int64_t id);

  Connection& connection_;
  Places& places_;
  Line line_;
  LaneRows rows_;
  Statement bits_;
  Statement bits_write_;
  Statement head_state_;
  Statement hold_;
  Statement let_go_;
  Statement held_place_;
  std::vector<std::pair<std::int64_t, std::int64_t>> known_;  ///< bits by queue, of this transaction
  std::vector<std::int64_t> offered_;                         ///< halves
  std::vector<std::int64_t> gathered_;                        ///< scratch
  WallTime now_{};
};

/// A group's name as lanes are found by; never 0 for one that is not empty. Stored: it must never change.
std::int64_t group_hash(std::string_view group);

}  // namespace sluice::queue::sqlite
