#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.hpp"
#include "host/stores/table/metadata_items.hpp"

/// Names and limits of a table of the leased layout. Names are short because they are billed; docs/run/tables.md has
/// them all.
namespace sluice::queue::leased {

inline constexpr std::string_view kDefaultTableName = "sluice-queues";

namespace attribute {
// Of every item.
inline constexpr std::string_view kPartition = "p";  ///< S, hash key
inline constexpr std::string_view kSort = "s";       ///< S, range key
inline constexpr std::string_view kExpires = "x";    ///< N: s since 1970, for DynamoDB's TTL; messages have none

// Of messages. Times are whole ms since 1970; 0 stands for one that was taken away, as for `q`.
inline constexpr std::string_view kBody = "b";          ///< S of text, JSON included; B of anything else
inline constexpr std::string_view kContentType = "t";   ///< S; N 1: JSON; absent: what the type of the body implies
inline constexpr std::string_view kAttributes = "a";    ///< M of S
inline constexpr std::string_view kGroup = "g";         ///< S
inline constexpr std::string_view kPriority = "P";      ///< N, as `Priority`; absent: normal
inline constexpr std::string_view kVersion = "v";       ///< N; absent: 1
inline constexpr std::string_view kReceiveCount = "r";  ///< N; absent: 0
inline constexpr std::string_view kNotBefore = "n";     ///< N: hidden until then
inline constexpr std::string_view kFailure = "f";       ///< M, as the DynamoMQ layout spells it
inline constexpr std::string_view kOwnId = "i";         ///< S: its id, where that is not made of its place
inline constexpr std::string_view kMarks = "q";         ///< N: core's marks
inline constexpr std::string_view kSentAt = "c";        ///< N, where it is not the time of the key
inline constexpr std::string_view kCreatedAt = "d";     ///< N, where it is not when it was sent
inline constexpr std::string_view kUpdated = "z";       ///< N: of the last update; absent: when it was created
inline constexpr std::string_view kReceived = "y";      ///< N: of a claim that was written
inline constexpr std::string_view kUniqueToken = "u";   ///< S: of the unique key that it took
inline constexpr std::string_view kNonce = "w";         ///< S: of the last update
/// S: the DynamoDB JSON of the item that the record was read from elsewhere, with what no field says.
inline constexpr std::string_view kNative = "o";
inline constexpr std::string_view kCheckpoint = "k";  ///< B: progress that a handler has stored
/// S: of a dead letter whose group waits for an operator, the sort key by which it lay there before.
inline constexpr std::string_view kHold = "h";

// Of an alias: where the message of an id lies.
inline constexpr std::string_view kTarget = "t";      ///< S
inline constexpr std::string_view kTargetSort = "k";  ///< S

// Of an ownership item, and of the item with the number of shards.
inline constexpr std::string_view kOwner = "o";     ///< S: a host's incarnation; "": nobody's
inline constexpr std::string_view kEpoch = "e";     ///< N
inline constexpr std::string_view kClean = "c";     ///< BOOL
inline constexpr std::string_view kShards = "n";    ///< N
inline constexpr std::string_view kMostEver = "h";  ///< N: the highest number of shards that there ever was
inline constexpr std::string_view kDrained = "d";   ///< BOOL: of a shard beyond the number, which is empty

// Of a heartbeat, and of an ownership item that changed hands while something of it was in doubt.
inline constexpr std::string_view kInFlightBound = "m";  ///< N: see InFlightBound

// Of a host's heartbeat.
inline constexpr std::string_view kCounter = "c";  ///< N
inline constexpr std::string_view kLease = "l";    ///< N, ms
inline constexpr std::string_view kLeaving = "q";  ///< BOOL
inline constexpr std::string_view kWorksOn = "w";  ///< SS of halves: "orders", "orders!"
inline constexpr std::string_view kMoves = "mv";   ///< SS: of `w`, what it carries elsewhere and wants all of
inline constexpr std::string_view kBell = "b";     ///< S
/// BOOL: its machine knows that it is no more; true: and what it had handed out has been settled. Absent: it may live.
inline constexpr std::string_view kEnded = "e";
/// M: by half as in `w`, a map of what it knows of the shards of it that it owns (`ownership_items.cpp`).
inline constexpr std::string_view kFigures = "o";
}  // namespace attribute

/// The sort key of items that are alone in their partition: aliases, notices, idempotency keys, marks.
inline constexpr std::string_view kAlone = "-";
/// The partition of the hosts' heartbeats.
inline constexpr std::string_view kHosts = "@hosts";
/// The partition of the names of the table's queues, which are the sort keys.
inline constexpr std::string_view kQueues = "@queues";
/// The sort key of the number of shards, beside the ownership items of the standard half.
inline constexpr std::string_view kShardsKey = "shards";

/// What the token of a unique key ends with that is free again once its message has been handed out.
inline constexpr char kFreedAtClaim = '!';

inline constexpr std::uint32_t kLeastShards = 1;
inline constexpr std::uint32_t kMostShards = 1024;
inline constexpr std::uint32_t kDefaultShards = 8;

/// Room that a message needs beyond what was sent, for all that its life may add: times, counts, marks, its id.
inline constexpr std::size_t kLifeBytes = 160;

/// A time as an attribute; 0: none.
dynamo::AttributeValue stored_time(const std::optional<WallTime>& time);

inline constexpr table::LayoutNames kNames{.hash = attribute::kPartition,
                                           .range = attribute::kSort,
                                           .alone = kAlone,
                                           .expires = attribute::kExpires,
                                           .version = attribute::kVersion,
                                           .nonce = attribute::kNonce,
                                           .unique_token = attribute::kUniqueToken,
                                           .updated = attribute::kUpdated,
                                           .receives = attribute::kReceiveCount,
                                           .received = attribute::kReceived,
                                           .hidden_until = attribute::kNotBefore,
                                           .marks = attribute::kMarks,
                                           .failure = attribute::kFailure,
                                           .checkpoint = attribute::kCheckpoint,
                                           .time = stored_time,
                                           .life_bytes = kLifeBytes};

}  // namespace sluice::queue::leased
