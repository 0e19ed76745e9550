#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/standing.hpp"

namespace sluice::queue::sqlite {

/// A place in the order of a half: sent_at, seq.
using Place = std::pair<std::int64_t, std::int64_t>;
inline constexpr Place kFirst{std::numeric_limits<std::int64_t>::min(), 0};  ///< before all others

/// The order in which messages that can be claimed lie: the tables `ready` and, for those whose next delivery is a
/// suspect, `suspects`. Works inside a transaction of its connection.
class Places {
 public:
  explicit Places(Connection& connection);

  /// Of a standing without `until`.
  void insert(const Standing& standing);
  void remove(const Standing& standing);

  /// Puts down those whose lease or delay has ended; false when there were more than one transaction should carry.
  bool bring_back(std::int64_t half, WallTime now);
  // The first that can be claimed at `now`.
  std::optional<Place> first_ready(std::int64_t half, WallTime now) { return first(first_ready_, half, now); }
  std::optional<Place> first_suspect(std::int64_t half, WallTime now) { return first(first_suspect_, half, now); }

  /// When the next one comes due by itself, for a half without any that is due at `now`.
  std::optional<WallTime> next_due(std::int64_t half, WallTime now);
  /// The sent_at of the first message of a half, in whatever state; nothing when it is empty.
  std::optional<WallTime> front(std::int64_t half);

 private:
  static std::optional<Place> first(Statement& statement, std::int64_t half, WallTime now);

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
};

}  // namespace sluice::queue::sqlite
