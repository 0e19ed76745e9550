#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/tally.hpp"
#include "host/queue/store.hpp"

namespace sluice::queue::sqlite {

/// Where a message stands: its place and the state of its deliveries, without its content.
struct Standing {
  std::int64_t seq = 0;
  std::string id;
  std::int64_t half = 0;
  WallTime sent_at{};
  std::int64_t version = 1;
  std::uint32_t receives = 0;
  std::optional<WallTime> until;  ///< nothing: it lies in `ready`
  std::optional<WallTime> received_at;
  std::optional<std::string> failure;  ///< encoded
};

/// The state machine of messages: claimed, extended, settled, moved. Works inside a transaction of its connection.
class Deliveries {
 public:
  Deliveries(Connection& connection, Tally& tally);

  /// The oldest due messages of a half, which are `until` somebody's then.
  std::vector<Claim> claim(std::int64_t half, std::size_t max, WallTime until, WallTime now);
  /// Sets each result to applied or lost.
  void settle(std::int64_t half, std::span<const Settlement> settlements, std::span<SettleResult> results,
              WallTime now);
  std::optional<Receipt> extend(std::int64_t half, const Receipt& receipt, WallTime until, WallTime now);

  std::optional<Standing> standing(std::int64_t seq);
  /// The sent_at of the first message of a half, in whatever state; nothing when it is empty.
  std::optional<WallTime> front(std::int64_t half);
  /// Puts down a message that has just been inserted and is visible from `sent_at` on.
  void place_delayed(std::int64_t seq, std::int64_t half, WallTime sent_at, WallTime now);
  /// Puts down a message that has just been inserted as `standing` says, version included.
  void place(const Standing& standing, WallTime updated_at);
  /// Changes where a message stands, its half included; the version goes up by one.
  void change(const Standing& before, const Standing& after, WallTime now);
  /// To the end of a half, as if it had just been sent there.
  void move(const Standing& before, std::int64_t half, std::optional<std::string> failure, WallTime now);
  void remove(const Standing& standing);

 private:
  /// Hides records for good that only a foreign hand can have written so: they must not stop the queue, nor look as if
  /// they could be claimed.
  void set_aside(const std::vector<std::int64_t>& unreadable, WallTime now);
  void lease_head(std::int64_t half, const std::vector<Claim>& claims, WallTime until, WallTime now);
  void lease_each(std::int64_t half, const std::vector<Claim>& claims, const std::vector<bool>& touched, WallTime until,
                  WallTime now);
  SettleStatus settle_one(std::int64_t half, const Settlement& settlement, WallTime now);
  void settle_back(const Standing& before, const Settlement& settlement, std::optional<std::string> failure,
                   WallTime now);
  void delete_removed();
  void bring_back(std::int64_t half, WallTime now);
  std::optional<Standing> held(std::int64_t half, const Receipt& receipt);
  void write(const Standing& standing, std::int64_t version, WallTime updated_at);
  void remove_ready(const Standing& standing);
  void insert_ready(const Standing& standing);

  Tally& tally_;
  Statement due_;
  Statement due_done_;
  Statement oldest_;
  Statement lease_first_;
  Statement lease_head_;
  Statement lease_again_;
  Statement ready_insert_;
  Statement ready_delete_;
  Statement ready_delete_head_;
  Statement remove_leased_;
  Statement message_delete_;
  Statement message_move_;
  Statement delivery_delete_;
  Statement delivery_delete_run_;
  Statement delivery_write_;
  Statement standing_;
  Statement front_ready_;
  Statement front_waiting_;
  std::vector<std::int64_t> removed_;  ///< by the current `settle`; their deliveries are still to be deleted
};

}  // namespace sluice::queue::sqlite
