#include "host/stores/dynamomq/dynamomq_wake_place.hpp"

#include <utility>

#include "host/stores/dynamomq/bell_items.hpp"

namespace sluice::queue::dynamomq {

Result<std::vector<wake::Announcement>> read_bells(const table::StoreParts& parts, const table::QueueTable& place,
                                                   Deadline deadline) {
  const auto found =
      parts.client.get_item({.table = place.table, .key = bell_item_key(), .consistent = false}, deadline);
  if (!found) {
    return table::store_error(place, found.error());
  }
  return read_bell_item(found->item);
}

DynamoMqWakePlace::DynamoMqWakePlace(const table::StoreParts& parts, table::QueueTable place, Doorbell& doorbell,
                                     wake::Ringer* ringer)
    : parts_(parts),
      place_(std::move(place)),
      name_("table '" + place_.table + "'" + (place_.region.empty() ? "" : " in " + place_.region)),
      doorbell_(doorbell),
      ringer_(ringer) {}

Result<double> DynamoMqWakePlace::announce(const wake::Announcement& announcement, Deadline deadline) {
  SLUICE_PASS_ON(parts_.clock.be_sure(place_, table::kTimeTolerance, deadline));
  if (ringer_ != nullptr) {
    ringer_->leave_out(announcement.host);
  }
  std::vector<std::string> outdated;
  {
    const MutexLock lock(mutex_);
    outdated = outdated_;
  }
  const auto done = parts_.client.update_item(announce_request(place_.table, announcement, outdated), deadline);
  if (!done) {
    return table::store_error(place_, done.error());
  }
  const MutexLock lock(mutex_);
  outdated_ = outdated_hosts(read_bell_item(done->item), now());
  return done->capacity.write;
}

Result<void> DynamoMqWakePlace::withdraw(const std::string& host, Deadline deadline) {
  const auto done = parts_.client.update_item(withdraw_request(place_.table, host), deadline);
  if (!done && done.error().kind != dynamo::ErrorKind::conditional_check_failed) {
    return table::store_error(place_, done.error());
  }
  return {};
}

}  // namespace sluice::queue::dynamomq
