#pragma once

#include <cstdint>
#include <vector>

#include "host/queue/delivery.hpp"
#include "host/queue/source.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/deliveries.hpp"
#include "host/stores/sqlite/lease.hpp"
#include "host/stores/sqlite/places.hpp"

namespace sluice::queue::sqlite {

/// Hands out the oldest due messages of a half: many of those that nobody suspects, or one suspect. Works inside a
/// transaction of its connection.
class Claimer {
 public:
  Claimer(Connection& connection, Places& places, Deliveries& deliveries);

  Claimed claim(std::int64_t half, const ClaimRequest& request, const Lease& lease);

 private:
  /// Of the current claim: what was found, and the rows that it was found in.
  struct Found {
    std::vector<Delivery> deliveries;
    std::vector<bool> touched;             ///< there is a row in `deliveries` already
    std::vector<std::int64_t> unreadable;  ///< of these nothing but the seq
    bool whole = true;                     ///< all that was due, unless `max` was reached
  };
  Found read_ready(std::int64_t half, const ClaimRequest& request, const Lease& lease);
  void lease_ready(std::int64_t half, const Found& found, const Lease& lease);
  void lease_head(std::int64_t half, const Found& found, const Lease& lease);
  void lease_each(std::int64_t half, const Found& found, const Lease& lease);
  /// Nothing when the oldest is none, or there is none at all.
  std::vector<Delivery> claim_suspect(std::int64_t half, const Lease& lease, bool counts);
  /// Hides records for good that only a foreign hand can have written so: they must not stop the queue, nor look as if
  /// they could be claimed.
  void set_aside(std::int64_t seq, WallTime now);

  Places& places_;
  Deliveries& deliveries_;
  Statement oldest_;
  Statement suspect_;
  Statement lease_first_;
  Statement lease_head_;
  Statement lease_again_;
  Statement lease_suspect_;
  Statement ready_delete_;
  Statement ready_delete_head_;
  Statement suspect_delete_;
};

}  // namespace sluice::queue::sqlite
