#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/timestamp.hpp"
#include "host/queue/message.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/sqlite/times.hpp"

namespace sluice::queue::sqlite {

/// Where a message stands: its place and the state of its deliveries, without its content.
struct MessageRecord {
  std::int64_t seq = 0;
  std::string id;
  std::int64_t half = 0;
  WallTime sent_at{};
  std::int64_t version = 1;
  std::uint32_t receives = 0;
  std::optional<WallTime> until;  ///< nothing: it can be claimed, and lies in `ready` or `suspects`
  std::optional<WallTime> received_at;
  std::optional<std::string> failure;  ///< encoded
  bool suspect = false;                ///< marked: it has been handed out as a suspect, or is to be
  std::int64_t group = 0;              ///< as `group_hash` gives it; 0: none
  Priority priority = Priority::normal;

  bool suspected() const { return state().is_suspect(); }
  core::MessageState state() const {
    return {(half & 1) != 0 ? Half::dlq : Half::standard, until, received_at.has_value(), receives, suspect};
  }
  /// Makes the change, in memory; the version stays.
  void apply(const core::StateChange& change);
  /// Whether those behind it in its group wait for it though it cannot be claimed: it is in flight, or to be tried
  /// again. Not so one that was sent for later, which is hidden until the very time it was sent for, and one that was
  /// set aside for good. Which of the times is the later one says nothing: the clock may have been set back.
  bool blocks() const { return until && (received_at || (sent_at != *until && *until < kEndOfTime)); }
};

inline std::optional<std::int64_t> stored(std::optional<WallTime> time) {
  return time ? std::optional<std::int64_t>(stored(*time)) : std::nullopt;
}
inline std::optional<WallTime> loaded(std::optional<std::int64_t> time) {
  return time ? std::optional<WallTime>(loaded(*time)) : std::nullopt;
}

}  // namespace sluice::queue::sqlite
