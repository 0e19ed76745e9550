#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.hpp"
#include "host/queue/message.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/core/outcomes.hpp"

namespace sluice::queue::core {

/// What a store's record says of a message that decides what may be done with it. A value.
struct MessageState {
  Half half = Half::standard;
  std::optional<WallTime> hidden_until;  ///< nothing: visible from the time that it was sent for
  bool received = false;                 ///< somebody claimed it, and has not said what came of it
  std::uint32_t receives = 0;
  Marks marks = 0;

  static MessageState of(const StoredMessage& record) {
    return {record.half, record.invisible_until, record.received_at.has_value(), record.message.attempt, record.marks};
  }

  /// Whether its next delivery is a suspect: it is marked, or whoever claimed it last never said what became of it.
  bool is_suspect() const { return (marks & kSuspect) != 0 || received; }
  bool is_in_flight(WallTime now) const { return received && hidden_until && now <= *hidden_until; }
};

}  // namespace sluice::queue::core
