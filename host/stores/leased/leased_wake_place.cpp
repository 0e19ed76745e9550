#include "host/stores/leased/leased_wake_place.hpp"

#include <optional>
#include <utility>

#include "host/queue/wake/datagram_socket.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/leased_schema.hpp"
#include "host/stores/leased/ownership_items.hpp"

namespace sluice::queue::leased {
namespace {

std::string bell_of_name(const std::string& table, const std::string& half) { return table + "/" + half; }

// A heartbeat says nothing of when the next one comes; a third of the lease is usual, and a lease is what it may take.
std::optional<wake::Announcement> announcement_of(const std::string& table, const dynamo::Item& item) {
  const auto host = decode_beat(item);
  const auto written_at = time_of(item, attribute::kUpdated);
  if (!host || !written_at || host->beat.leaving) {
    return std::nullopt;
  }
  const auto address = wake::Address::parse(host->bell);
  if (!address || address->wildcard() || address->port() == 0) {
    return std::nullopt;
  }
  wake::Announcement told{
      .host = host->beat.host, .address = address->text(), .queues = {}, .at = *written_at, .every = host->beat.lease};
  for (const std::string& half : host->beat.works_on) {
    std::string bell = bell_of_name(table, half);
    if (bell.size() <= wake::kMostNameBytes) {
      told.queues.push_back(std::move(bell));
    }
  }
  return told;
}

}  // namespace

std::string bell_of(const table::QueueTable& place, Half half) {
  return bell_of_name(place.table, half_name(place.queue, half));
}

Result<std::vector<wake::Announcement>> read_bells(const table::StoreParts& parts, const table::QueueTable& place,
                                                   Deadline deadline) {
  const auto hosts = read_partition(parts.client, place.table, std::string(kHosts), false, deadline);
  if (!hosts) {
    return table::store_error(place, hosts.error());
  }
  std::vector<wake::Announcement> announcements;
  for (const dynamo::Item& host : *hosts) {
    if (auto told = announcement_of(place.table, host)) {
      announcements.push_back(std::move(*told));
    }
  }
  return announcements;
}

LeasedWakePlace::LeasedWakePlace(const table::StoreParts& parts, table::QueueTable place, OwnedTable& table,
                                 Doorbell& doorbell, wake::Ringer* ringer)
    : parts_(parts),
      place_(std::move(place)),
      name_("table '" + place_.table + "'" + (place_.region.empty() ? "" : " in " + place_.region)),
      table_(table),
      doorbell_(doorbell),
      ringer_(ringer) {}

Result<double> LeasedWakePlace::announce(const wake::Announcement& announcement, Deadline deadline) {
  if (ringer_ != nullptr) {
    ringer_->leave_out(table_.coordinator().host());
  }
  const auto told = listen_at(announcement.address, deadline);
  return told ? Result<double>(0.0) : told.error();  // a heartbeat is paid for in any case
}

Result<void> LeasedWakePlace::withdraw(const std::string& /*host*/, Deadline deadline) {
  return listen_at({}, deadline);
}

Result<void> LeasedWakePlace::listen_at(const std::string& address, Deadline deadline) {
  if (table_.coordinator().listen_at(address, deadline)) {
    return {};
  }
  return Error(ErrorCode::unavailable, "no heartbeat can be written to " + name_ + "; the next one will say it");
}

}  // namespace sluice::queue::leased
