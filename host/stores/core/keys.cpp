#include "host/stores/core/keys.hpp"

#include "base/guard.hpp"
#include "base/timestamp.hpp"
#include "host/queue/message.hpp"

namespace sluice::queue::core {

bool is_void(const StoredKey& key, WallTime now) { return key.until <= now; }

std::optional<KeyAnswer> answer_to(const KeyClaim& claim, const StoredKey* found, WallTime now) {
  const bool there = found != nullptr && !is_void(*found, now);
  if (there && found->done) {
    return KeyAnswer{.state = KeyState::done, .owner = found->owner, .result = found->result, .until = found->until};
  }
  if (claim.hold_for <= Duration::zero()) {
    return KeyAnswer{};
  }
  if (there && found->owner != claim.owner) {
    return KeyAnswer{.state = KeyState::running, .owner = found->owner, .until = found->until};
  }
  return std::nullopt;
}

WallTime mark_end(const KeyClaim& claim, WallTime now) {
  return SLUICE_GUARD(key_mark_expiry) ? later(now, claim.hold_for) : kEndOfTime;
}

bool may_record(const StoredKey* found, std::string_view owner, WallTime now) {
  return found == nullptr || is_void(*found, now) || found->owner == owner;
}

bool holds_unique_key(const MessageState& message, UniqueUntil until) {
  return message.half == Half::standard &&
         (until == UniqueUntil::done || (message.receives == 0 && !message.received_at));
}

}  // namespace sluice::queue::core
