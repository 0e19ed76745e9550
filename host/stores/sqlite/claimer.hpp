#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "host/queue/source.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/deliveries.hpp"
#include "host/stores/sqlite/group_order.hpp"
#include "host/stores/sqlite/lease.hpp"
#include "host/stores/sqlite/priority_scheduler.hpp"
#include "host/stores/sqlite/ready_index.hpp"
#include "host/stores/sqlite/ready_rows.hpp"

namespace sluice::queue::sqlite {

/// Hands out the oldest due messages of a half, by priority where there are several, or in the turns of its groups
/// where its order is kept: many of those that nobody suspects, or one suspect. Works inside a transaction of its
/// connection.
class Claimer {
 public:
  Claimer(Connection& connection, ReadyIndex& ready_index, Deliveries& deliveries, GroupOrder& groups);

  Claimed claim(std::int64_t half, const ClaimRequest& request, const Lease& lease);
  /// What the last claim, a job's, went by in place of the weaker rules that it asked for.
  std::optional<Kept> overruled() const { return overruled_; }

 private:
  /// Of the current claim: what was found, and the rows that it was found in.
  struct Found {
    std::vector<Delivery> deliveries;
    std::vector<Place> places;  ///< in `ready`
    std::vector<std::int64_t> sent_at;
    std::vector<bool> touched;             ///< there is a row in `deliveries` already
    std::vector<std::int64_t> unreadable;  ///< of these nothing but the seq
    std::size_t bytes = 0;                 ///< of bodies
    bool whole = true;                     ///< all that was due, unless `max` was reached
  };
  /// How much more may be claimed.
  struct Room {
    std::size_t messages;
    std::size_t bytes;
  };
  /// Sees to it that the half keeps the order that is wanted.
  void keep_order(std::int64_t half, const ClaimRequest& request);
  bool claim_ready(std::int64_t half, const ClaimRequest& request, const Lease& lease, std::vector<Delivery>& claimed);
  bool claim_by_priority(std::int64_t half, const ClaimRules& rules, const Room& room, const Lease& lease,
                         std::vector<Delivery>& claimed);
  Found read_ready(std::int64_t half, const Room& room, const Lease& lease);
  /// Takes the row at which `row` stands; the bytes of its body.
  static std::size_t take_row(const Statement& row, const Lease& lease, Found& found);
  /// `place_half`: under which they lie in `ready`.
  void lease_ready(std::int64_t half, std::int64_t place_half, const Found& found, const Lease& lease);
  void lease_head(std::int64_t half, std::int64_t place_half, const Found& found, const Lease& lease);
  void lease_each(std::int64_t half, std::int64_t place_half, const Found& found, const Lease& lease);
  bool first_ready(std::int64_t half, WallTime now);
  /// The groups of what was claimed offer their next ones, where they do not wait for it.
  void advance(std::int64_t half, const std::vector<Delivery>& claimed);
  /// Nothing when the oldest is none, or there is none at all.
  std::vector<Delivery> claim_suspect(std::int64_t half, const Lease& lease, bool counts);
  /// Hides records for good that only a foreign hand can have written so: they must not stop the queue, nor look as if
  /// they could be claimed.
  void set_aside(std::int64_t seq, WallTime now);

  ReadyIndex& ready_index_;
  Deliveries& deliveries_;
  GroupOrder& groups_;
  std::optional<Kept> overruled_;
  Connection& connection_;
  Statement oldest_;
  Statement suspect_;
  Statement lease_first_;
  Statement lease_head_;
  Statement lease_again_;
  Statement lease_suspect_;
  Statement ready_delete_;
  Statement ready_delete_head_;
  Statement suspect_delete_;
  Statement messages_;
  // Made when they are first needed.
  std::array<std::unique_ptr<Statement>, kPriorities> oldest_of_;
  PriorityScheduler turns_;
};

}  // namespace sluice::queue::sqlite
