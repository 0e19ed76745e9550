#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/timestamp.hpp"
#include "host/queue/message.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/core/outcomes.hpp"

namespace sluice::queue::core {

/// What a store's record says of a message that decides what may be done with it, and what that makes of it. A value.
struct MessageState {
  Half half = Half::standard;
  WallTime sent_at{};                      ///< its place in the order of its half
  std::optional<WallTime> hidden_until{};  ///< nothing: visible from the time that it was sent for
  std::optional<WallTime> received_at{};   ///< somebody claimed it then, and has not said what came of it
  std::uint32_t receives = 0;
  Marks marks = 0;
  std::int64_t version = 1;
  Priority priority = Priority::normal;
  std::string group{};
  Failure failure{};
  std::optional<WallTime> held_place{};  ///< a dead letter's that its group waits for: where it lay
  std::string checkpoint{};              ///< progress that its handler has stored; empty: none

  static MessageState of(const StoredMessage& record) {
    return {.half = record.half,
            .sent_at = record.message.sent_at,
            .hidden_until = record.invisible_until,
            .received_at = record.received_at,
            .receives = record.message.attempt,
            .marks = record.marks,
            .version = record.version,
            .priority = record.message.priority,
            .group = record.message.group,
            .failure = record.failure,
            .checkpoint = record.message.checkpoint};
  }
  /// Makes the record say so.
  void put_into(StoredMessage& record) const {
    record.half = half;
    record.message.sent_at = sent_at;
    record.invisible_until = hidden_until;
    record.received_at = received_at;
    record.message.attempt = receives;
    record.marks = marks;
    record.version = version;
    record.message.priority = priority;
    record.message.group = group;
    record.failure = failure;
    record.message.checkpoint = checkpoint;
  }

  /// Whether its next delivery is a suspect: it is marked, or whoever claimed it last never said what became of it.
  bool is_suspect() const { return (marks & kSuspect) != 0 || received_at; }
  bool is_in_flight(WallTime now) const { return received_at && hidden_until && now <= *hidden_until; }
  /// Whether those behind it in its group wait for it though it cannot be claimed: it is in flight, or to be tried
  /// again. Not so one that was sent for later, which is hidden until the very time it was sent for, and one that was
  /// set aside for good. Which of the times is the later one says nothing: the clock may have been set back.
  bool holds_up_its_group() const {
    return hidden_until && (received_at || (sent_at != *hidden_until && *hidden_until < kEndOfTime));
  }
};

}  // namespace sluice::queue::core
