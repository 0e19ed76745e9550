#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/source.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/message_record.hpp"
#include "host/stores/sqlite/ready_index.hpp"

namespace sluice::queue::sqlite {

/// What is kept of a half's order, as `queues.kept` says in two bits for each half, the standard one first.
enum class Kept : std::uint8_t { none = 0, group = 1, queue = 2, fair = 3 };

/// What these rules ask a half to keep.
Kept kept_for(const ClaimRules& rules);

/// The order within groups. A half of which none is kept costs nothing here.
///
/// One message of a group, its head, lies where it can be claimed, the others in `waiting`. The head is offered anew
/// each time, behind the heads that were offered before it, which gives each group its turn. Where the order is kept
/// strictly, a group offers nothing while its head is out (in flight, or to be tried again) or while something else
/// holds it. Messages without a group wait for nobody, unless the whole queue is one group.
///
/// Works inside a transaction of its connection.
class GroupOrder {
 public:
  GroupOrder(Connection& connection, ReadyIndex& ready_index) : connection_(connection), ready_index_(ready_index) {}

  /// At the start of each transaction.
  void begin();
  /// When what is offered from here on gets its turn.
  void at(WallTime now) { now_ = now; }

  Kept kept(std::int64_t half) { return kept_in(bits_of(half), half); }
  static Kept kept_in(std::int64_t bits, std::int64_t half) {
    return static_cast<Kept>((bits >> shift_of(half)) & kMask);
  }
  /// True: the end of a message of this half may concern a group.
  bool tracks(std::int64_t half) { return bits_of(half) != 0; }
  /// The group that a message of this half, with a group of that name, is ordered in; 0: none.
  std::int64_t group_of(std::int64_t half, std::string_view name);
  std::int64_t group_of(const MessageRecord& record) { return group_of(record.half(), record.state.group); }
  /// In which range of `ready` a message without a group lies.
  std::int64_t range_of(const MessageRecord& record);

  /// From here on the half's order is kept so. Nothing of it can be claimed until the caller has told of all that lies
  /// there, by `change` or in `ready`, and then of its end.
  void begin_order(std::int64_t half, Kept kept);
  void end_order(std::int64_t half);

  /// A message stands otherwise than before; null: it was not there, or is there no more. Those without a group are
  /// left out by the caller.
  void change(const MessageRecord* before, const MessageRecord* after);
  /// A message that the group waited for has gone: where its order is kept, one that was in flight; where it is given
  /// turns only, the head that was handed out.
  void gone(std::int64_t half, std::int64_t group, std::int64_t seq);
  /// A message is sent to the group and put in its place, at a time that is never before that of the one sent before
  /// it; returned.
  std::int64_t arrive(std::int64_t half, std::int64_t group, const Place& place);

  /// The group of this message stays where it is until `let_go`.
  void hold(const MessageRecord& head);
  /// The message was removed, or has left its half. Does nothing for one that holds no group.
  void let_go(std::int64_t seq);
  /// The sent_at that a message had which holds its group.
  std::optional<WallTime> held_place(std::int64_t seq);

  /// Whether a group of this half has offered something since it was asked last.
  bool take_offered(std::int64_t half) { return std::erase(offered_, half) > 0; }

 private:
  /// A group as `groups` has it: with a row while it has a head or something holds it, and nothing waits without.
  struct Group {
    std::int64_t number = 0;  ///< of its row; 0: it has none
    std::int64_t id = 0;
    std::int64_t half = 0;
    std::optional<std::int64_t> head;
    std::int64_t head_sent = 0;
    std::int64_t turn = 0;       ///< the head's place, while it can be claimed
    std::int64_t others = 0;     ///< messages beside the head that keep the group from offering anything
    std::int64_t last_sent = 0;  ///< about: nobody who waits was sent later

    void hold_one_less() { others = std::max<std::int64_t>(0, others - 1); }
    friend bool operator==(const Group&, const Group&) = default;
  };
  /// Makes a change of a group, and sees to it that it offers what it may. `came`: as `balance` has it.
  template <typename Change>
  void update(std::int64_t half, std::int64_t id, const std::optional<Place>& came, Change change);
  Group load(std::int64_t half, std::int64_t id);
  void store(const Group& before, Group& after);
  /// Gives it a row where it has none.
  void number(Group& group);
  void take(Group& group, const MessageRecord& record);
  void give(Group& group, const MessageRecord& record);
  /// `came`: a message that has just been put into line, which may be older than the head.
  void balance(Group& group, const std::optional<Place>& came = {});
  void offer(Group& group);
  /// Puts the head back into line where it can be claimed.
  void withdraw(Group& group);
  void wait(Group& group, const Place& place, bool suspected);
  void leave(const Group& group, const Place& place);

  static constexpr std::int64_t kMask = 3;
  static int shift_of(std::int64_t half) { return (half & 1) == 0 ? 0 : 2; }
  std::int64_t bits_of(std::int64_t half);
  static std::int64_t range(std::int64_t half, bool suspected) { return suspected ? suspect_half(half) : half; }

  Connection& connection_;
  ReadyIndex& ready_index_;
  Statement load_{connection_,
                  "SELECT number, head, head_sent, turn, others, last_sent FROM sluice_groups WHERE id = ?1"};
  Statement insert_{connection_,
                    "INSERT INTO sluice_groups (id, half, head_sent, turn, others, last_sent) "
                    "VALUES (?1, ?2, 0, 0, 0, 0)"};
  Statement update_{connection_,
                    "UPDATE sluice_groups SET head = ?2, head_sent = ?3, turn = ?4, others = ?5, last_sent = ?6 "
                    "WHERE number = ?1"};
  Statement drop_{connection_, "DELETE FROM sluice_groups WHERE number = ?1"};
  Statement wait_{connection_, "INSERT OR IGNORE INTO sluice_waiting VALUES (?1, ?2, ?3, ?4)"};
  Statement first_{
      connection_,
      "SELECT sent_at, seq, suspected FROM sluice_waiting WHERE group_number = ?1 ORDER BY sent_at, seq LIMIT "
      "1"};
  Statement leave_{connection_, "DELETE FROM sluice_waiting WHERE group_number = ?1 AND sent_at = ?2 AND seq = ?3"};
  Statement bits_{connection_, "SELECT kept FROM sluice_queues WHERE id = ?1"};
  Statement head_state_{
      connection_,
      "SELECT until IS NOT NULL, received_at IS NOT NULL OR marks & 1 FROM sluice_deliveries WHERE seq = ?1"};
  Statement hold_{connection_, "INSERT OR REPLACE INTO sluice_holds VALUES (?1, ?2, ?3, ?4)"};
  Statement let_go_{connection_, "DELETE FROM sluice_holds WHERE seq = ?1"};
  Statement held_place_{connection_, "SELECT sent_at, half, group_id FROM sluice_holds WHERE seq = ?1"};
  std::vector<std::pair<std::int64_t, std::int64_t>> known_;  ///< bits by queue, of this transaction
  std::vector<std::int64_t> offered_;                         ///< halves
  WallTime now_{};
};

}  // namespace sluice::queue::sqlite
