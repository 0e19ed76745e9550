#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dynamo/attribute_value.hpp"
#include "dynamo/client.hpp"
#include "host/queue/wake/announcement.hpp"
#include "host/stores/table/store_parts.hpp"

/// Where hosts are woken, in one item of a DynamoMQ table. Like notices, it has no `queue_type`, so that no index holds
/// it, and none of DynamoMQ's attributes but `id`; each host writes one attribute of it.
namespace sluice::queue::dynamomq {

/// An announcement that is so much older than its host meant it to become is taken away by whoever announces next.
inline constexpr int kIntervalsToKeep = 10;

/// The item's primary key.
dynamo::Item bell_item_key();

/// Puts a host's announcement in, in the place of the one before, and takes away what `outdated` hosts have left. The
/// whole item comes back.
dynamo::UpdateItemRequest announce_request(const std::string& table, const wake::Announcement& announcement,
                                           const std::vector<std::string>& outdated);
/// Takes a host's announcement away: refused where there is no item.
dynamo::UpdateItemRequest withdraw_request(const std::string& table, const std::string& host);

/// What hosts announce in a table, for at most half a read unit for each 4 KB.
Result<std::vector<wake::Announcement>> read_bells(const table::StoreParts& parts, const table::QueueTable& place,
                                                   Deadline deadline);
/// What the item says, without what nobody can read.
std::vector<wake::Announcement> read_bell_item(const dynamo::Item& item);

/// The hosts whose announcements are worth nothing for long.
std::vector<std::string> outdated_hosts(const std::vector<wake::Announcement>& announcements, WallTime now);

}  // namespace sluice::queue::dynamomq
