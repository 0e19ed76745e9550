#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "dynamo/attribute_value.hpp"
#include "dynamo/item_write.hpp"
#include "host/queue/source.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/core/message_state.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/leased/leased_schema.hpp"
#include "host/stores/leased/made_ids.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/table_errors.hpp"

/// Items of a leased table to messages and back. Pure functions.
namespace sluice::queue::leased {

/// Where an item lies. A value.
struct Place {
  std::string partition;
  std::string sort;

  dynamo::Item key() const;
  /// That of any item; empty texts where it has none.
  static Place of(const dynamo::Item& item);
  friend bool operator==(const Place&, const Place&) = default;
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// A partition of messages taken apart.
struct Partition {
  std::string queue;
  Half half = Half::standard;
  std::uint32_t shard = 0;
};

std::string partition_of(std::string_view queue, Half half, std::uint32_t shard);
/// Nothing for a partition that holds no messages.
std::optional<Partition> parse_partition(std::string_view partition);
/// The half of the queue, and the shard, that an item of a message lies in.
Half half_of(const dynamo::Item& item);
std::uint32_t shard_of(const dynamo::Item& item);

/// The partition of a half's ownership items, and the sort key of one.
std::string ownership_partition(std::string_view queue, Half half);
std::string ownership_sort(std::uint32_t shard);
/// Nothing for one that is none.
std::optional<std::uint32_t> shard_of_ownership(std::string_view sort);

/// The partition of what holds the groups of a shard back: an item for each dead letter that its group waits for, `i`
/// its id and `g` the group.
std::string hold_partition_of(std::string_view queue, std::uint32_t shard);
/// Where the item of that dead letter lies: ids may be longer than a sort key.
Place hold_place(std::string_view queue, std::uint32_t shard, std::string_view id);

/// The id of a message whose sender named none: its sort key and its shard.
std::string made_id(std::string_view sort, std::uint32_t shard);
/// Where a message of that id lies that was never moved; nothing for an id of a sender's own.
std::optional<Place> made_place(std::string_view queue, std::string_view id);
/// Where the alias of an id lies.
std::string alias_partition_of(std::string_view queue, std::string_view id);
Place alias_place(std::string_view queue, std::string_view id);
/// Where an alias leads.
Place alias_target(const dynamo::Item& alias);

/// The longest id of a sender's own: its alias has the queue's name beside it.
std::size_t most_id_bytes(std::string_view queue);
/// Whether a message of this id can be there, and what is wrong with one that cannot.
bool is_storable_id(std::string_view queue, std::string_view id);
std::string unstorable_id(std::string_view queue);

/// The `version` of an item as a conditional write compares it; absent, it is 1.
table::VersionMark version_of(const dynamo::Item& item);
table::VersionMark version_mark(std::int64_t version);

/// The id of a message: the one that it brings, or the one that is made of its place.
std::string id_of(const dynamo::Item& item);
/// As much of it as handing it out needs; sent at the time of its key.
core::MessageState state_of(const dynamo::Item& item);
/// Of a dead letter that keeps its group waiting: the sort key by which it lay there before; empty: it holds nothing.
std::string held_sort(const dynamo::Item& item);
/// Reads any item whatever; what is missing or of another type takes its default and stands in `odd` by the name that
/// records of all layouts have for it. Never fails.
StoredMessage decode_record(const dynamo::Item& item);
/// The same without the content, which is left empty and not even looked at.
StoredMessage decode_standing(const dynamo::Item& item);
/// What is odd about it in a line for people; empty: nothing.
std::string oddity_of(const dynamo::Item& item);

/// What a sender determines: body, type, attributes, group. ErrorCode::invalid when it cannot be stored.
Result<dynamo::Item> encode_content(const NewMessage& message);

/// The normal priority is spelt by its absence.
void put_priority(dynamo::Item& item, Priority priority);

/// What the store determines of a new message.
struct NewRecord {
  Place place;         ///< its key holds when it is due
  std::string own_id;  ///< empty: the id is made of the place
  WallTime now{};
};
/// The whole item. ErrorCode::invalid when it, or what becomes of it, would not fit into DynamoDB.
Result<dynamo::Item> encode_record(const NewMessage& message, const NewRecord& record);
/// A whole record as it stands, to lie at `place`: times, counts, failure and version included. Where it brings the
/// item that it was read from (`native`), attributes that no field says are kept.
Result<dynamo::Item> encode_stored(const StoredMessage& record, const Place& place);

/// What `list` gives as `native`: the item that the record was read from elsewhere, or what nobody here understands of
/// it; empty: nothing.
std::string native_of(const dynamo::Item& item);

/// The same record at another place: its id, when it was sent (or `sent_at`, where that is given) and when it was
/// created stay said, whatever the new key says.
dynamo::Item moved_item(dynamo::Item item, const Place& to, std::optional<WallTime> sent_at = {});

std::optional<WallTime> time_of(const dynamo::Item& item, std::string_view name);

// The writes that make up the life of a message, each conditional on the record's version, and what its transactions
// are made of.

using table::RecordWrite;

/// A record that is to be as it was read, for a write to take effect.
table::Expected as_read(const Place& place, table::VersionMark version);

/// The sort key of a half's mark that a job wants its groups in order, beside its ownership items.
inline constexpr std::string_view kOrderedKey = "ordered";

/// A shard in the hands of one owner: what a transaction writes with its check holds only while it is there.
struct OwnerFence {
  Place ownership;         ///< the shard's ownership item
  std::int64_t epoch = 0;  ///< 0: nothing is written down

  static OwnerFence of(const QueueAddress& address, std::uint32_t shard, std::int64_t epoch) {
    return {{ownership_partition(address.queue, address.half), ownership_sort(shard)}, epoch};
  }
  friend auto operator<=>(const OwnerFence&, const OwnerFence&) = default;
};
dynamo::TransactAction owner_check(const std::string& table, const OwnerFence& fence);

/// Puts the alias of an id in the place of the one that was read; nothing: of none.
dynamo::TransactAction put_alias(const table::QueueTable& table, const std::string& id, const Place& target,
                                 const std::optional<Place>& before);
/// The same whatever it is: for whoever has the message itself in the same transaction.
dynamo::TransactAction put_alias_anyway(const table::QueueTable& table, const std::string& id, const Place& target);
/// Removes an item that is no message, whatever it says.
dynamo::TransactAction remove_item(const table::QueueTable& table, const Place& place);
/// Removes a record that is still as it was read.
dynamo::TransactAction remove_record(const table::QueueTable& table, const dynamo::Item& read);
/// A dead letter holds its group back no more; nothing for one that holds none.
std::optional<dynamo::TransactAction> free_group(const table::QueueTable& table, const dynamo::Item& read);

/// Makes the change in a whole item, wherever that lies then. The version stays.
void change_item(dynamo::Item& item, const core::StateChange& change);

}  // namespace sluice::queue::leased
