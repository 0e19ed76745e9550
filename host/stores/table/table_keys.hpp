#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "dynamo/attribute_value.hpp"
#include "dynamo/client.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/idempotency.hpp"
#include "host/stores/table/metadata_items.hpp"
#include "host/stores/table/record_layout.hpp"

/// Idempotency keys among the items of a queue's table. Like notices, they have no `queue_type`, so that no index of a
/// DynamoMQ table holds them, and none of DynamoMQ's attributes but `id`. DynamoDB's TTL removes them, where it is
/// switched on.
namespace sluice::queue::table {

/// Puts down that a key is done, in place of the owner's mark. Its condition fails where another message has the key by
/// now, in progress or done, so that the transaction it belongs to must not commit. It fits into a transaction as it
/// is.
dynamo::ItemWrite record_request(const std::string& table, const KeyRecord& record, const std::string& owner,
                                 WallTime now, const ItemScope& scope);

/// The idempotency keys of the jobs on one queue: an item for each, judged by DynamoDB's time, so that none has to wait
/// until DynamoDB's TTL removes it. A mark costs one write unit for each KB, and one more where it is taken away; a
/// look half a read unit for each 4 KB twice over, as it is consistent. Listing reads the whole table. The
/// layout outlives them.
std::unique_ptr<IdempotencyKeys> make_table_keys(const RecordLayout& layout);

}  // namespace sluice::queue::table
