#include "host/stores/dynamomq/bell_items.hpp"

#include <utility>

#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/table/metadata_items.hpp"
#include "host/stores/table/table_keys.hpp"

namespace sluice::queue::dynamomq {
namespace {

/// What the names of the attributes begin with; then the host, S.
constexpr std::string_view kBell = "sluice_bell:";
/// DynamoDB may remove the item, where its TTL is on, so long after the last one has announced himself.
constexpr std::chrono::hours kItemLife(24);
/// Taken away at once.
constexpr std::size_t kMostOutdated = 20;

std::string attribute_of(const std::string& host) { return std::string(kBell) + host; }

std::int64_t expiry_seconds(WallTime at) {
  return std::chrono::duration_cast<std::chrono::seconds>((at + kItemLife).time_since_epoch()).count();
}

}  // namespace

dynamo::Item bell_item_key() { return {{std::string(attribute::kId), std::string(table::kNoticePrefix) + "bells"}}; }

dynamo::UpdateItemRequest announce_request(const std::string& table, const wake::Announcement& announcement,
                                           const std::vector<std::string>& outdated) {
  dynamo::UpdateItemRequest request{.table = table, .key = bell_item_key()};
  request.update = "SET #own = :own, #expires = :expires";
  request.names.emplace("#own", attribute_of(announcement.host));
  request.names.emplace("#expires", attribute::kLoneExpires);
  request.values.emplace(":own", wake::encode(announcement));
  request.values.emplace(":expires", dynamo::AttributeValue::number(expiry_seconds(announcement.at)));
  for (std::size_t i = 0; i < outdated.size() && i < kMostOutdated; ++i) {
    const std::string name = "#old" + std::to_string(i);
    request.update += (i == 0 ? " REMOVE " : ", ") + name;
    request.names.emplace(name, attribute_of(outdated[i]));
  }
  request.return_values = "ALL_NEW";
  return request;
}

dynamo::UpdateItemRequest withdraw_request(const std::string& table, const std::string& host) {
  dynamo::UpdateItemRequest request{.table = table, .key = bell_item_key()};
  request.update = "REMOVE #own";
  request.condition = "attribute_exists(#own)";
  request.names.emplace("#own", attribute_of(host));
  return request;
}

Result<std::vector<wake::Announcement>> read_bells(const table::StoreParts& parts, const table::QueueTable& place,
                                                   Deadline deadline) {
  const auto found =
      parts.client.get_item({.table = place.table, .key = bell_item_key(), .consistent = false}, deadline);
  if (!found) {
    return table::store_error(place, found.error());
  }
  return read_bell_item(found->item);
}

std::vector<wake::Announcement> read_bell_item(const dynamo::Item& item) {
  std::vector<wake::Announcement> announcements;
  for (const auto& [name, value] : item) {
    if (name.rfind(kBell, 0) != 0) {
      continue;
    }
    const auto* text = dynamo::find<std::string>(item, name);
    auto read = text == nullptr ? std::nullopt : wake::decode(name.substr(kBell.size()), *text);
    if (read) {
      announcements.push_back(std::move(*read));
    }
  }
  return announcements;
}

std::vector<std::string> outdated_hosts(const std::vector<wake::Announcement>& announcements, WallTime now) {
  std::vector<std::string> hosts;
  for (const wake::Announcement& announcement : announcements) {
    if (now > announcement.at + kIntervalsToKeep * std::min(announcement.every, wake::kLongestInterval)) {
      hosts.push_back(announcement.host);
    }
  }
  return hosts;
}

}  // namespace sluice::queue::dynamomq
