#pragma once

#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "dynamo/attribute_value.hpp"
#include "dynamo/client.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/idempotency.hpp"
#include "host/stores/table/lone_items.hpp"

/// Idempotency keys among the items of a queue's table. Like notices, they have no `queue_type`, so that no index of a
/// DynamoMQ table holds them, and none of DynamoMQ's attributes but `id`. DynamoDB's TTL removes them, where it is
/// switched on.
namespace sluice::queue::table {

/// What the ids of key items begin with: then job, "/" and a hash of the key. No message of ours has such an id.
inline constexpr std::string_view kKeyPrefix = "sluice:key/";
constexpr bool is_key_id(std::string_view id) { return id.substr(0, kKeyPrefix.size()) == kKeyPrefix; }

namespace attribute {
inline constexpr std::string_view kKeyText = "sluice_key";         ///< B
inline constexpr std::string_view kKeyOwner = "sluice_key_owner";  ///< S: the message's id
inline constexpr std::string_view kKeyFence = "sluice_key_fence";  ///< N: of the delivery; of a mark only
inline constexpr std::string_view kKeyUntil = "sluice_key_until";  ///< N: ms since 1970, DynamoDB's time. Void after it
inline constexpr std::string_view kKeyDone = "sluice_key_done";    ///< BOOL, true: done. Absent: in progress
inline constexpr std::string_view kKeyResult = "sluice_key_result";  ///< B: what the handler gave back; absent: nothing
}  // namespace attribute

/// The primary key of a key's item.
dynamo::Item key_item_key(const std::string& job, std::string_view key, const LoneNames& names);

/// Marks a key as in progress: refused where another message has it, in progress or done.
dynamo::PutItemRequest mark_request(const std::string& table, const KeyClaim& claim, WallTime now,
                                    const LoneNames& names);
/// Takes the owner's mark away: refused where it is another's, or done.
dynamo::DeleteItemRequest unmark_request(const std::string& table, const KeyClaim& claim, const LoneNames& names);
/// Puts down that a key is done, in place of the owner's mark. Its condition fails where another message has the key by
/// now, in progress or done, so that the transaction it belongs to must not commit. It fits into a transaction as it
/// is.
dynamo::PutItemRequest record_request(const std::string& table, const KeyRecord& record, const std::string& owner,
                                      WallTime now, const LoneNames& names);

/// What an item says. False: it is no key's item.
bool read_key_item(const dynamo::Item& item, StoredKey& key, const LoneNames& names);

}  // namespace sluice::queue::table
