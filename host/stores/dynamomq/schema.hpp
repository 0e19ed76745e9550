#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/timestamp.hpp"
#include "host/stores/table/metadata_items.hpp"

/// Names and limits of a DynamoMQ v0.11.0 table, and of what this host adds to its items.
namespace sluice::queue::dynamomq {

inline constexpr std::string_view kDefaultTableName = "dynamo-mq-table";
inline constexpr std::string_view kDefaultIndexName = "dynamo-mq-index-queue_type-sent_at";

namespace attribute {
// DynamoMQ's. All of them are always written; a time that is absent is the empty string.
inline constexpr std::string_view kId = "id";
inline constexpr std::string_view kData = "data";
inline constexpr std::string_view kReceiveCount = "receive_count";
inline constexpr std::string_view kQueueType = "queue_type";
inline constexpr std::string_view kVersion = "version";
inline constexpr std::string_view kCreatedAt = "created_at";
inline constexpr std::string_view kUpdatedAt = "updated_at";
inline constexpr std::string_view kSentAt = "sent_at";
inline constexpr std::string_view kReceivedAt = "received_at";
inline constexpr std::string_view kInvisibleUntilAt = "invisible_until_at";

// Ours, under one prefix. Go readers ignore what they do not know. Names are short because they are billed.
inline constexpr std::string_view kNonce = "sluice_nonce";  ///< S: of the last write by one of our hosts
inline constexpr std::string_view kContentType =
    "sluice_content_type";                                            ///< S: where the type of `data` does not imply it
inline constexpr std::string_view kAttributes = "sluice_attributes";  ///< M of S
inline constexpr std::string_view kGroup = "sluice_group";            ///< S
inline constexpr std::string_view kFailure = "sluice_failure";        ///< M: why the last attempt failed
/// N: core's marks; absent: none. It is called after the only one that there was at first.
inline constexpr std::string_view kMarks = "sluice_suspect";
inline constexpr std::string_view kCheckpoint = "sluice_checkpoint";  ///< B: progress that a handler has stored
inline constexpr std::string_view kUniqueToken = "sluice_unique";     ///< S: the one of the unique key that it took

/// N: s since 1970, of items that are no messages. A table has one attribute for TTL.
inline constexpr std::string_view kLoneExpires = "sluice_key_expires";
}  // namespace attribute

/// What is hidden until a time is due just after it.
inline constexpr Duration kInstant = std::chrono::nanoseconds(1);

/// Room that a claim needs beyond what was sent: two timestamps in place of empty strings, a longer version and count,
/// and the mark of a suspect.
inline constexpr std::size_t kClaimBytes = 2 * 30 + 2 * 20 + 17;

/// A time as an attribute; empty: none.
inline dynamo::AttributeValue stored_time(const std::optional<WallTime>& time) {
  return time ? format_timestamp(*time) : std::string();
}

inline constexpr table::LayoutNames kNames{.hash = attribute::kId,
                                           .expires = attribute::kLoneExpires,
                                           .version = attribute::kVersion,
                                           .nonce = attribute::kNonce,
                                           .unique_token = attribute::kUniqueToken,
                                           .updated = attribute::kUpdatedAt,
                                           .receives = attribute::kReceiveCount,
                                           .received = attribute::kReceivedAt,
                                           .hidden_until = attribute::kInvisibleUntilAt,
                                           .marks = attribute::kMarks,
                                           .failure = attribute::kFailure,
                                           .checkpoint = attribute::kCheckpoint,
                                           .half = attribute::kQueueType,
                                           .sent_at = attribute::kSentAt,
                                           .created = attribute::kCreatedAt,
                                           .time = stored_time,
                                           .life_bytes = kClaimBytes};

}  // namespace sluice::queue::dynamomq
