#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/clock.hpp"
#include "host/queue/source.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/group_order.hpp"
#include "host/stores/sqlite/lease.hpp"
#include "host/stores/sqlite/message_record.hpp"
#include "host/stores/sqlite/ready_index.hpp"
#include "host/stores/sqlite/tally.hpp"

namespace sluice::queue::sqlite {

/// The state machine of messages once they are claimed: extended, settled, moved. Works inside a transaction of its
/// connection.
class Deliveries {
 public:
  Deliveries(Connection& connection, Tally& tally, ReadyIndex& ready_index, GroupOrder& groups);

  /// Sets each result to applied or lost.
  void settle(std::int64_t half, std::span<const Completion> completions, std::span<SettleResult> results,
              WallTime now);
  SettleStatus settle(std::int64_t half, const Completion& completion, WallTime now);
  std::optional<Receipt> extend(std::int64_t half, const Receipt& receipt, const Lease& lease);

  std::optional<MessageRecord> standing(std::int64_t seq);
  /// Puts down a message that has just been inserted and is visible from `sent_at` on.
  void place_delayed(std::int64_t seq, std::int64_t half, WallTime sent_at, WallTime now);
  /// Puts down a message that has just been inserted as `standing` says, version included.
  void place(const MessageRecord& standing, WallTime updated_at);
  /// Changes where a message stands, its half included; the version goes up by one.
  void change(const MessageRecord& before, const MessageRecord& after, WallTime now);
  void remove(const MessageRecord& standing);
  /// ReadyIndex::bring_back for every half.
  bool bring_back(std::int64_t half, WallTime now);

 private:
  /// All but its row in `deliveries`; false: the receipt does not hold.
  bool remove_leased(std::int64_t half, const Receipt& receipt);
  /// Sees to its place where it can be claimed; null: it was not there, or is there no more.
  void stand(const MessageRecord* before, const MessageRecord* after);
  std::optional<MessageRecord> held(std::int64_t half, const Receipt& receipt);
  void write(const MessageRecord& standing, std::int64_t version, WallTime updated_at);

  Tally& tally_;
  ReadyIndex& ready_index_;
  GroupOrder& groups_;
  Statement remove_leased_;
  Statement group_;
  Statement brought_back_;
  Statement message_delete_;
  Statement message_move_;
  Statement delivery_delete_;
  Statement delivery_delete_run_;
  Statement delivery_write_;
  Statement standing_;
};

}  // namespace sluice::queue::sqlite
