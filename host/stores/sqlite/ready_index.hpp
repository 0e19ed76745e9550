#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "host/stores/sqlite/clock_steps.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/message_record.hpp"

namespace sluice::queue::sqlite {

/// A place in the order of a half: sent_at, seq.
using Place = std::pair<std::int64_t, std::int64_t>;
inline constexpr Place kFirst{std::numeric_limits<std::int64_t>::min(), 0};  ///< before all others

/// Under which half messages of a priority lie in `ready`: normal ones under their own.
inline std::int64_t class_half(std::int64_t half, Priority priority) {
  constexpr std::int64_t kStep = std::int64_t{1} << 40;
  switch (priority) {
    case Priority::critical:
      return half + kStep;
    case Priority::high:
      return half + 2 * kStep;
    case Priority::low:
      return half + 3 * kStep;
    case Priority::normal:
      break;
  }
  return half;
}
/// How a priority is stored in `messages`: the normal one as NULL.
inline std::optional<std::int64_t> stored(Priority priority) {
  return priority == Priority::normal ? std::nullopt : std::optional(static_cast<std::int64_t>(priority));
}
inline Priority stored_priority(std::optional<std::int64_t> value) {
  return value && *value >= 0 && *value < static_cast<std::int64_t>(kPriorities) ? static_cast<Priority>(*value)
                                                                                 : Priority::normal;
}

/// The order in which messages that can be claimed lie: the tables `ready` and, for those whose next delivery is a
/// suspect, `suspects`. Works inside a transaction of its connection.
class ReadyIndex {
 public:
  explicit ReadyIndex(Connection& connection);

  /// A message can be claimed from here on, in its turn; `half` as `class_half` gives it.
  void put(std::int64_t half, const Place& place, bool suspected);
  void take(std::int64_t half, const Place& place, bool suspected);

  /// Before what has ended is asked for: looks whether the wall clock was set forward.
  void look(WallTime wall, SteadyTime steady) { steps_.look(wall, steady); }
  /// Leases that have ended by the wall clock alone: how many, and when the first of them ends.
  struct Outlasting {
    std::uint64_t count = 0;
    std::optional<WallTime> first{};
  };
  Outlasting outlasting(std::int64_t half, WallTime now);
  /// Puts down those whose lease or delay has ended; false when there were more than one transaction should carry. Of a
  /// half that keeps no order and has no priorities.
  bool bring_back(std::int64_t half, WallTime now);
  /// The seqs of those that `bring_back` would put down.
  std::vector<std::int64_t> due(std::int64_t half, WallTime now);
  /// Expired leases and delays that one claim brings back, so that a million of them do not come in one transaction.
  static constexpr std::size_t kBringBackLimit = 5'000;
  // The first that can be claimed at `now`.
  std::optional<Place> first_ready(std::int64_t half, WallTime now) { return first(first_ready_, half, now); }
  std::optional<Place> first_suspect(std::int64_t half, WallTime now) { return first(first_suspect_, half, now); }

  /// When the next one comes due by itself, for a half without any that is due at `now`.
  std::optional<WallTime> next_due(std::int64_t half, WallTime now);
  /// The sent_at of the first message of a half, in whatever state; nothing when it is empty.
  std::optional<WallTime> front(std::int64_t half);
  /// The same of a half that keeps an order or has priorities: a look at all of it.
  std::optional<WallTime> front_of_all(std::int64_t half);

 private:
  /// When the lease or delay ends at whose row `due_` stands.
  WallTime end() const;
  static std::optional<Place> first(Statement& statement, std::int64_t half, WallTime now);

  ClockSteps steps_;
  Statement due_;
  Statement due_done_;
  Statement ready_insert_;
  Statement ready_delete_;
  Statement suspect_insert_;
  Statement suspect_delete_;
  Statement first_ready_;
  Statement first_suspect_;
  Statement next_until_;
  Statement next_sent_;
  Statement front_;
  Statement front_of_all_;
};

}  // namespace sluice::queue::sqlite
