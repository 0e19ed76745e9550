#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "host/queue/message.hpp"

/// What a sender says of a message that is not to be there twice: its deduplication id and its unique key.
namespace sluice::queue {

/// The longest deduplication id or unique key, in bytes: every store has room for it beside its own.
inline constexpr std::size_t kMostSendKeyBytes = 1024;
inline constexpr Duration kLeastDedupWindow = std::chrono::seconds(1);
inline constexpr Duration kLongestDedupWindow = std::chrono::hours(24) * 366;

/// Whether the message has either.
inline bool has_send_keys(const NewMessage& message) {
  return !message.dedup_id.empty() || !message.unique_key.empty();
}

/// Why they cannot be kept: too long, not UTF-8, or a window out of bounds. ErrorCode::invalid.
std::optional<Error> refused_send_keys(const NewMessage& message);

/// A key as messages to people show it: whole, or its beginning and its length.
std::string abridged_key(const std::string& key);

}  // namespace sluice::queue
