#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "host/queue/source.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/message_record.hpp"
#include "host/stores/sqlite/records.hpp"

namespace sluice::queue::sqlite {

/// Hands out the oldest due messages of a half, by priority where there are several, or in the turns of its groups
/// where its order is kept: many of those that nobody suspects, or one suspect. Works inside a transaction of its
/// connection.
class Claimer {
 public:
  Claimer(Connection& connection, Records& records);

  Claimed claim(std::int64_t half, const ClaimRequest& request, const Lease& lease);
  /// What the last claim, a job's, went by in place of the weaker rules that it asked for.
  std::optional<Kept> overruled() const { return overruled_; }

 private:
  /// What was found in one range of `ready`.
  struct Found {
    struct Row {
      Place place;
      std::int64_t sent_at;
      bool touched;  ///< it has a row in `deliveries` already
    };
    std::vector<Row> rows;
    std::vector<std::int64_t> unreadable;  ///< of these nothing but the seq
    bool all_new = true;
  };
  /// How much more may be claimed.
  struct Room {
    std::size_t messages;
    std::size_t bytes;
  };
  /// Sees to it that the half keeps the order that is wanted.
  void keep_order(std::int64_t half, const ClaimRequest& request);
  /// False: there may be more that is due.
  bool claim_ready(std::int64_t half, const ClaimRequest& request, const Lease& lease, std::vector<Delivery>& claimed);
  bool claim_round(std::int64_t half, const ClaimRules& rules, const Lease& lease, Room& room,
                   std::vector<Delivery>& claimed);
  void lease_found(std::int64_t half, std::int64_t range, const Found& found, const Lease& lease);
  /// The groups of what was claimed offer their next ones, where they do not wait for it.
  void advance(std::int64_t half, const std::vector<Delivery>& claimed, std::size_t from);
  /// Nothing when the oldest is none, or there is none at all.
  std::optional<Delivery> claim_suspect(std::int64_t half, const Lease& lease, bool counts);
  /// Hides records for good that only a foreign hand can have written so: they must not stop the queue, nor look as if
  /// they could be claimed.
  void set_aside(std::int64_t seq, WallTime now);

  Connection& connection_;
  Records& records_;
  ReadyIndex& ready_;
  GroupOrder& groups_;
  std::optional<Kept> overruled_;
  std::array<Statement, kPriorities> oldest_;
  Statement suspect_{connection_, "SELECT " + std::string(kDeliveryColumns) +
                                      " FROM sluice_deliveries AS d JOIN sluice_messages AS m ON m.seq = d.seq WHERE "
                                      "d.seq = ?1"};
  Statement lease_first_{connection_,
                         "INSERT INTO sluice_deliveries VALUES (?1, ?2, ?3, 1, 2, 1, ?4, ?5, ?5, NULL, 0, NULL)"};
  // The whole head at once, when all of it is new: the usual case, in which one statement each is twice as fast.
  Statement lease_head_{
      connection_,
      "INSERT INTO sluice_deliveries SELECT seq, ?6, ?4, 1, 2, 1, sent_at, ?5, ?5, NULL, 0, NULL FROM sluice_ready "
      "WHERE half = ?1 AND (sent_at, seq) <= (?2, ?3)"};
  Statement ready_delete_head_{connection_, "DELETE FROM sluice_ready WHERE half = ?1 AND (sent_at, seq) <= (?2, ?3)"};
  Statement messages_{connection_, "SELECT messages FROM sluice_halves WHERE half = ?1"};
  std::map<std::int64_t, std::array<std::int64_t, kPriorities>> credits_;  ///< of the priorities of each half
};

}  // namespace sluice::queue::sqlite
