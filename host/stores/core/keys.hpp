#pragma once

#include <optional>
#include <string_view>

#include "base/clock.hpp"
#include "host/queue/idempotency.hpp"
#include "host/queue/message.hpp"
#include "host/stores/core/message_state.hpp"

/// What idempotency keys and unique keys mean, once for all stores. A store looks for what stands of a key, asks, and
/// writes under the condition that nobody has changed that since. Pure functions.
namespace sluice::queue::core {

// Idempotency keys. `found` is what stands of the key; null: nothing does.

/// A mark or a record counts for nothing once its time has passed.
bool is_void(const StoredKey& key, WallTime now);
/// What the claim comes to. Nothing: the owner may mark the key, because nobody has it or it is his already.
std::optional<KeyAnswer> answer_to(const KeyClaim& claim, const StoredKey* found, WallTime now);
/// Until when a mark counts that is made now.
WallTime mark_end(const KeyClaim& claim, WallTime now);
/// Whether the end of the owner's message may put down that the key is done: unless another message has it by now, in
/// progress or done.
bool may_record(const StoredKey* found, std::string_view owner, WallTime now);

// Unique keys.

/// Whether the message that took a unique key when it was sent has it still: dead letters have none.
bool holds_unique_key(const MessageState& message, UniqueUntil until);

}  // namespace sluice::queue::core
