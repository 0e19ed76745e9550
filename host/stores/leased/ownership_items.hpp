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
#include "host/stores/owned/membership.hpp"
#include "host/stores/owned/ownership.hpp"
#include "host/stores/table/table_errors.hpp"

/// Heartbeats, ownership of shards and their number: items to values and back, the writes that change them, and reads
/// of the small partitions that they lie in.
namespace sluice::queue::leased {

using owned::Heartbeat;
using owned::InFlightBound;
using owned::Ownership;

/// What a process calls itself as an owner: the host's name, a slash and 8 characters of chance.
std::string make_incarnation(const std::string& host, Random& random);

/// Asks for a partition, from its head.
dynamo::QueryRequest partition_query(const std::string& table, const std::string& partition, bool consistent);
/// The same, of keys from `from` to `to`, both included.
dynamo::QueryRequest range_query(const std::string& table, const std::string& partition, const std::string& from,
                                 const std::string& to, bool consistent);
/// All that lies there, in the order of its keys.
dynamo::Result<std::vector<dynamo::Item>> read_partition(dynamo::Client& client, const std::string& table,
                                                         const std::string& partition, bool consistent,
                                                         Deadline deadline);
/// The groups of a shard that wait for an operator. Consistent.
dynamo::Result<std::set<std::string>> read_held_groups(dynamo::Client& client, const table::QueueTable& place,
                                                       std::uint32_t shard, Deadline deadline);

/// What a host knows of the dead letters in its shards of a standard half. A value.
struct DeadFigures {
  std::uint64_t records = 0;
  std::uint32_t shards = 0;  ///< that have been looked at
  std::uint32_t more = 0;    ///< of these: in which there are more
  Duration looked_ago{};     ///< the longest time

  friend bool operator==(const DeadFigures&, const DeadFigures&) = default;
};

/// What a host knows of its shards of a half. A value.
struct OwnerFigures {
  std::uint64_t ready = 0;
  std::uint64_t delayed = 0;
  std::uint64_t in_flight = 0;
  std::optional<WallTime> oldest_due{};
  std::uint32_t unread = 0;  ///< shards of which more lies in the table, or may by now, than has been read
  Duration looked_ago{};     ///< at the others, the longest time
  std::uint32_t shards = 0;
  std::uint32_t in_use = 0;  ///< so many somebody has to own; 0: not told
  DeadFigures dead{};

  friend bool operator==(const OwnerFigures&, const OwnerFigures&) = default;
};

OwnerFigures decode_figures(const dynamo::Item& item);

/// What a host tells in its one item.
struct HostBeat {
  Heartbeat beat;
  InFlightBound in_flight_bound = 0;  ///< nothing of a shard is at work in it beyond that
  std::string bell{};                 ///< where it listens for rings; empty: nowhere
  std::map<std::string, OwnerFigures> figures{};
};

/// `now` is for people and figures, and is never compared with a clock; `expires` for DynamoDB's TTL, in case nobody
/// clears up behind a host.
dynamo::Item encode_beat(const HostBeat& beat, WallTime now, WallTime expires);
/// Nothing for an item that is none, or only half of one.
std::optional<HostBeat> decode_beat(const dynamo::Item& item);
/// Marks a heartbeat, as it was read, as that of a host that has ended: others need not wait for its lease. Null, and
/// nothing is to be written, where it is none or says so already.
std::optional<dynamo::ItemWrite> ended_beat(const std::string& table, dynamo::Item item, bool settled);
/// Writes that mark, so that what a process owned that has ended, as its machine knows for certain, is taken at once;
/// `settled`: and nothing of it is in doubt. Costs a read and a write; where there is no heartbeat, the read. One that
/// moves meanwhile is an error: whoever wrote it lives.
Result<void> mark_ended(dynamo::Client& client, const table::QueueTable& place, const std::string& incarnation,
                        bool settled, Deadline deadline);
/// The write of an own heartbeat on condition that nobody has marked it so.
void demand_not_ended(dynamo::ItemWrite& beat);
/// And that none that was written after it is there: one that was long under way would take back what that one says.
void demand_no_later_one(dynamo::ItemWrite& request, const Heartbeat& beat);
/// Takes away the heartbeat of a host that is dead, if its counter has not moved.
dynamo::ItemWrite remove_beat(const std::string& table, const Heartbeat& beat);

/// An ownership item as it stands in the table.
struct OwnershipRow {
  Ownership value;
  bool drained = false;  ///< it lies beyond the number of shards, and nothing is left in it
  dynamo::Item item{};   ///< empty: there is none
};

/// The ownership items of a half, and the number of shards where it lies among them.
struct OwnershipPage {
  std::map<std::uint32_t, OwnershipRow> rows;
  std::optional<dynamo::Item> shards;
  bool ordered = false;  ///< a job wants the groups of this half in order
  /// What is wrong with items that lie there, in a line each; they are passed over, or taken as nobody's.
  std::vector<std::string> odd;
};
OwnershipPage decode_ownership(std::span<const dynamo::Item> items);

/// Says that a job wants the groups of a half in order; whoever claims without a word of it keeps to that from then on.
dynamo::ItemWrite ordered_mark(const table::QueueTable& place, Half half);

/// The write of an ownership item on condition that it still is as `before` says.
dynamo::ItemWrite ownership_write(const std::string& table, const std::string& partition, const OwnershipRow& before,
                                  const Ownership& after, bool drained);

/// How many shards a queue has. A value.
struct Shards {
  std::uint32_t count = 0;      ///< messages are sent to so many
  std::uint32_t most_ever = 0;  ///< the highest count that there ever was: what lies beyond `count` is to be drained

  friend bool operator==(const Shards&, const Shards&) = default;
};
/// As the item beside a queue's ownership items has them; nothing for a number that no queue can have.
std::optional<Shards> shards_in(const dynamo::Item& item);
/// That such an item says a number which none can have.
std::string no_shards_in(const dynamo::Item& item);
/// The first write of the item, on condition that there is none.
dynamo::ItemWrite first_numbers(const std::string& table, const std::string& queue, const Shards& shards);
/// The write of another number on condition that the item still is as `before` says; empty: there is none.
dynamo::ItemWrite numbers_write(const table::QueueTable& place, const dynamo::Item& before, const Shards& after);
/// What this process knows by itself of a half that it works on.
struct OwnWord {
  std::string host;  ///< its incarnation
  OwnerFigures figures;
};
/// The same of the halves of a queue; nothing of one that it does not work on. Thread-safe.
using OwnWordOf = std::function<std::optional<OwnWord>(Half half)>;

/// What the owners of a half say of it, added up.
struct Announced {
  QueueStats stats;
  std::uint32_t held = 0;    ///< shards that this is of
  std::uint32_t in_use = 0;  ///< shards that somebody has to own; 0: nobody has told
};

/// From the heartbeats; nothing where none of them says anything, as where a mover has the half. Of dead letters that
/// no job works on, the owners of the queue's standard half tell. Nothing is told that was not counted: it is at least
/// so much where they have not read all that lies there, or do not own all shards.
///
/// A heartbeat is as old as the time that it was written at (`z`) says; one that is older than its lease by `now`, or
/// written a lease after it, is passed over, as its host may be dead, and so is that of a host that leaves, whose
/// shards are others' by now. The oldest one gives the age of the whole. In place of its own heartbeat a process takes
/// what it knows now.
std::optional<Announced> announced_stats(std::span<const dynamo::Item> heartbeats, const QueueAddress& address,
                                         WallTime now, const OwnWordOf& own = {});

}  // namespace sluice::queue::leased
