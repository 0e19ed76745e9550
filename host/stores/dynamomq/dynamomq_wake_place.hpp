#pragma once

#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/wake/announcement.hpp"
#include "host/queue/wake/ringer.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::dynamomq {

/// What hosts announce in a table, for at most half a read unit for each 4 KB.
Result<std::vector<wake::Announcement>> read_bells(const table::StoreParts& parts, const table::QueueTable& place,
                                                   Deadline deadline);

/// Where the hosts of one table announce how they are woken: an item that no index finds. An announcement costs a write
/// unit for each KB that all of them take.
class DynamoMqWakePlace final : public wake::WakePlace {
 public:
  /// What `parts` refer to, and the bell, outlive the place; so does `ringer`, which may be null: it leaves out who
  /// announces himself here.
  DynamoMqWakePlace(const table::StoreParts& parts, table::QueueTable place, Doorbell& doorbell, wake::Ringer* ringer);

  const std::string& name() const override { return name_; }
  std::string bell(Half half) const override { return wake::bell_name(place_.table, half); }
  WallTime now() const override { return parts_.clock.wall_now(); }

  Result<double> announce(const wake::Announcement& announcement, Deadline deadline) override;
  Result<void> withdraw(const std::string& host, Deadline deadline) override;
  Result<std::vector<wake::Announcement>> read(Deadline deadline) override {
    return read_bells(parts_, place_, deadline);
  }
  void ring_here(Half half) override { doorbell_.ring_here({place_.queue, half}); }

 private:
  // Fixed after construction.
  const table::StoreParts parts_;
  const table::QueueTable place_;
  const std::string name_;
  Doorbell& doorbell_;
  wake::Ringer* const ringer_;

  Mutex mutex_;
  // What the last answer told.
  std::vector<std::string> outdated_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::dynamomq
