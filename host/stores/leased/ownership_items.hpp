#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "dynamo/attribute_value.hpp"
#include "dynamo/client.hpp"
#include "host/queue/message.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/owned/ownership_records.hpp"
#include "host/stores/table/table_errors.hpp"

/// Heartbeats, ownership of shards and their number: items to values and back, the writes that change them, and reads
/// of the small partitions that they lie in.
namespace sluice::queue::leased {

using owned::Heartbeat;
using owned::InFlightBound;
using owned::OwnerFigures;
using owned::Ownership;

/// What a process calls itself as an owner: the host's name, a slash and 8 characters of chance.
std::string make_incarnation(const std::string& host, Random& random);

/// Asks for a partition, from its head.
dynamo::QueryRequest partition_query(const std::string& table, const std::string& partition, bool consistent);
/// Of no keys but those from `from` to `to`, both included.
void limit_range(dynamo::QueryRequest& query, const std::string& from, const std::string& to);
/// All that lies there, in the order of its keys.
dynamo::Result<std::vector<dynamo::Item>> read_partition(dynamo::Client& client, const std::string& table,
                                                         const std::string& partition, bool consistent,
                                                         Deadline deadline);

/// The item of a heartbeat; `expires` is for DynamoDB's TTL, in case nobody clears up behind a host.
dynamo::Item encode_beat(const Heartbeat& beat, WallTime expires);
/// Nothing for an item that is none, or only half of one.
std::optional<Heartbeat> decode_beat(const dynamo::Item& item);
/// The hosts' heartbeats; what is none is passed over.
dynamo::Result<std::vector<Heartbeat>> read_beats(dynamo::Client& client, const std::string& table, Deadline deadline);
/// The write of an own heartbeat. Unless it is `anew`, on condition that nobody has marked it as that of a host that
/// has ended, and that none that was written after it is there: one that was long under way would take back what that
/// one says.
dynamo::ItemWrite beat_write(const std::string& table, const Heartbeat& beat, bool anew);
/// Marks a heartbeat as that of a host that has ended, so that what a process owned that is no more, as its machine
/// knows for certain, is taken at once and nobody waits for its lease; `settled`: and nothing of it is in doubt. Costs
/// a read and a write; where there is no heartbeat, or it says so already, the read. One that moves meanwhile is an
/// error: whoever wrote it lives.
Result<void> mark_ended(dynamo::Client& client, const table::QueueTable& place, const std::string& incarnation,
                        bool settled, Deadline deadline);

/// The ownership items of a half, and the number of shards where it lies among them.
struct OwnershipPage {
  std::map<std::uint32_t, Ownership> rows;
  std::optional<dynamo::Item> shards;
  bool ordered = false;  ///< a job wants the groups of this half in order
  /// What is wrong with items that lie there, in a line each; they are passed over, or taken as nobody's.
  std::vector<std::string> odd;

  /// Of a shard without a row: nobody's.
  Ownership of(std::uint32_t shard) const {
    const auto row = rows.find(shard);
    return row == rows.end() ? Ownership{.part = shard} : row->second;
  }
  /// The number behind the last one of its rows.
  std::uint32_t beyond() const { return rows.empty() ? 0 : rows.rbegin()->first + 1; }
};
OwnershipPage decode_ownership(std::span<const dynamo::Item> items);

/// Says that a job wants the groups of a half in order; whoever claims without a word of it keeps to that from then on.
dynamo::ItemWrite ordered_mark(const table::QueueTable& place, Half half);

/// The write of an ownership item on condition that it still is as `before` says.
dynamo::ItemWrite ownership_write(const std::string& table, const std::string& partition, const Ownership& before,
                                  const Ownership& after);

/// How many shards a queue has. A value.
struct Shards {
  std::uint32_t count = 0;      ///< messages are sent to so many
  std::uint32_t most_ever = 0;  ///< the highest count that there ever was: what lies beyond `count` is to be drained

  friend bool operator==(const Shards&, const Shards&) = default;
};
/// As the item beside a queue's ownership items has them; nothing for a number that no queue can have.
std::optional<Shards> shards_in(const dynamo::Item& item);
/// Where it lies.
Place shards_place(std::string_view queue);
/// The write of the item on condition that it still is as `before` says; empty: there is none.
dynamo::ItemWrite numbers_write(const table::QueueTable& place, const dynamo::Item& before, const Shards& after);
/// Makes it. Where there was none, the queue's name goes into the table's list of its queues before, so that none has
/// messages that the list does not know.
dynamo::Result<dynamo::ItemOutput> write_numbers(dynamo::Client& client, const table::QueueTable& place,
                                                 const dynamo::Item& before, const Shards& after, Deadline deadline);
/// The queues in that list. Consistent.
dynamo::Result<std::vector<std::string>> read_queues(dynamo::Client& client, const std::string& table,
                                                     Deadline deadline);

/// What the owners of a half say of it, added up.
///
/// Nothing where no heartbeat says anything, as where a mover has the half. Of dead letters that no job works on, the
/// owners of the queue's standard half tell. Nothing is told that was not counted: it is at least so much where they
/// have not read all that lies there, or do not own all shards.
///
/// A heartbeat is as old as the time that it was written at says; one that is older than its lease by `now`, or written
/// a lease after it, is passed over, as its host may be dead, and so is that of a host that leaves, whose shards are
/// others' by now. The oldest one gives the age of the whole.
std::optional<QueueStats> announced_stats(std::span<const Heartbeat> beats, const QueueAddress& address, WallTime now);

}  // namespace sluice::queue::leased
