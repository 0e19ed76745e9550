#pragma once

#include <string>
#include <vector>

#include "host/queue/doorbell.hpp"
#include "host/queue/wake/announcement.hpp"
#include "host/queue/wake/ringer.hpp"
#include "host/stores/leased/leased_source.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::leased {

/// How hosts and producers name a half of a queue to each other: many queues lie in one table.
std::string bell_of(const table::QueueTable& place, Half half);

/// What the heartbeats of a table say of where its hosts are woken, for half a read unit for each 4 KB of them. Hosts
/// that leave, and heartbeats that nobody can read, are not among it.
Result<std::vector<wake::Announcement>> read_bells(const table::StoreParts& parts, const table::QueueTable& place,
                                                   Deadline deadline);

/// Where the hosts of a table of this layout announce how they are woken: their heartbeats, which are written in any
/// case. Which queues a host is woken for is what its heartbeat says it works on.
class LeasedWakePlace final : public wake::WakePlace {
 public:
  /// What `parts` refer to, the table and the bell outlive the place; so does `ringer`, which may be null: it leaves
  /// out who announces himself here.
  LeasedWakePlace(const table::StoreParts& parts, table::QueueTable place, OwnedTable& table, Doorbell& doorbell,
                  wake::Ringer* ringer);

  const std::string& name() const override { return name_; }
  std::string bell(Half half) const override { return bell_of(place_, half); }
  WallTime now() const override { return parts_.clock.wall_now(); }

  /// For one write unit where the address is another than before; otherwise it is in each heartbeat.
  Result<double> announce(const wake::Announcement& announcement, Deadline deadline) override;
  Result<void> withdraw(const std::string& host, Deadline deadline) override;
  Result<std::vector<wake::Announcement>> read(Deadline deadline) override {
    return read_bells(parts_, place_, deadline);
  }
  void ring_here(Half half) override { doorbell_.ring_here({place_.queue, half}); }

 private:
  Result<void> listen_at(const std::string& address, Deadline deadline);

  // Fixed after construction.
  const table::StoreParts parts_;
  const table::QueueTable place_;
  const std::string name_;
  OwnedTable& table_;
  Doorbell& doorbell_;
  wake::Ringer* const ringer_;
};

}  // namespace sluice::queue::leased
