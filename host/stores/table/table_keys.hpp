#pragma once

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
#include "host/stores/table/store_parts.hpp"

/// Idempotency keys among the items of a queue's table. Like notices, they have no `queue_type`, so that no index of a
/// DynamoMQ table holds them, and none of DynamoMQ's attributes but `id`. DynamoDB's TTL removes them, where it is
/// switched on.
namespace sluice::queue::table {

/// Puts down that a key is done, in place of the owner's mark. Its condition fails where another message has the key by
/// now, in progress or done, so that the transaction it belongs to must not commit. It fits into a transaction as it
/// is.
dynamo::PutItemRequest record_request(const std::string& table, const KeyRecord& record, const std::string& owner,
                                      WallTime now, const ItemScope& scope);

/// The idempotency keys of the jobs on one queue: an item for each, judged by DynamoDB's time, so that none has to wait
/// until DynamoDB's TTL removes it. A mark costs one write unit for each KB, and one more where it is taken away; a
/// look half a read unit for each 4 KB twice over, as it is consistent. Listing reads the whole table.
class TableKeys final : public IdempotencyKeys {
 public:
  /// What `parts` refer to outlives it.
  TableKeys(const StoreParts& parts, QueueTable place, ItemScope scope)
      : parts_(parts), place_(std::move(place)), scope_(std::move(scope)) {}

  std::vector<KeyAnswer> begin(std::span<const KeyClaim> claims, Deadline deadline) override;
  Result<void> release(std::span<const KeyClaim> claims, Deadline deadline) override;
  Result<KeyPage> list(const std::string& job, std::size_t limit, const std::string& cursor,
                       Deadline deadline) override;
  Result<std::optional<StoredKey>> get(const std::string& job, const std::string& key, Deadline deadline) override;
  Result<bool> forget(const std::string& job, const std::string& key, Deadline deadline) override;

 private:
  using Indices = std::vector<std::size_t>;

  /// Answers by what stands there. What cannot be read, or what a lost write may still change, has failed.
  void look(std::span<const KeyClaim> claims, const Indices& which, std::vector<KeyAnswer>& answers,
            Deadline deadline) const;
  Indices mark(std::span<const KeyClaim> claims, const Indices& which, std::vector<KeyAnswer>& answers,
               Deadline deadline) const;

  const StoreParts parts_;
  const QueueTable place_;
  const ItemScope scope_;
};

}  // namespace sluice::queue::table
