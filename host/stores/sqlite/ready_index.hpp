#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/message_record.hpp"

namespace sluice::queue::sqlite {

inline constexpr Place kFirst{std::numeric_limits<std::int64_t>::min(), 0};  ///< before all others
inline constexpr Place kLast{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::max()};

// `ready` has one range of keys for each priority and one for suspects. Messages of the normal priority use the number
// of their half, the others numbers far above it.
inline constexpr std::int64_t kRangeStep = std::int64_t{1} << 40;
inline std::int64_t ready_half(std::int64_t half, Priority priority) {
  constexpr std::array<std::int64_t, kPriorities> kRanges{1, 2, 0, 3};
  return half + kRanges.at(static_cast<std::size_t>(priority)) * kRangeStep;
}
/// Of those whose next delivery is a suspect, whatever their priority.
inline std::int64_t suspect_half(std::int64_t half) { return half + 4 * kRangeStep; }

/// This SQL for each range of a half, ?1, joined by UNION ALL; "%" stands for the number of the range.
std::string in_each_range(std::string_view sql);
/// The seqs of all messages of a half, ?1, in whatever state they are.
std::string all_of_half();

/// By how much the wall clock has been set forward, or has gone on while the machine slept, since this process began to
/// look. A record says by the wall clock when its lease ends, but the lease was given for a span, and all who use a
/// file are on one machine and measure it alike: what was leased before ends by that much later.
class ClockSteps {
 public:
  static constexpr Duration kLeast = std::chrono::seconds(1);  ///< less may be a clock that is being put right slowly
  static constexpr std::size_t kMost = 8;                      ///< so many are remembered, the latest ones

  /// Of both clocks at one time.
  void look(WallTime wall, SteadyTime steady) {
    if (looked_) {
      const Duration passed = steady - steady_;
      const Duration by = wall - wall_ - passed;
      if (by <= -kLeast) {
        steps_.clear();  // times from before may be told from later ones no more
      } else if (by >= kLeast) {
        if (steps_.size() == kMost) {
          steps_.erase(steps_.begin());
        }
        steps_.push_back({std::max(wall - by + Duration(1), wall - passed), by});
      }
    }
    looked_ = true;
    wall_ = wall;
    steady_ = steady;
  }

  bool none() const { return steps_.empty(); }
  /// When, by the wall clock as it goes now, a lease ends that was written at `written` to end at `until`.
  WallTime end_of(WallTime until, WallTime written) const {
    for (const Step& step : steps_) {
      until += written < step.before ? step.by : Duration::zero();
    }
    return until;
  }

 private:
  struct Step {
    WallTime before;  ///< what was written earlier was written by the clock as it went until then
    Duration by;
  };

  bool looked_ = false;
  WallTime wall_{};
  SteadyTime steady_{};
  std::vector<Step> steps_;
};

/// The order in which messages that can be claimed lie (the table `ready`), and when those that cannot come back to it.
/// Works inside a transaction of its connection.
class ReadyIndex {
 public:
  explicit ReadyIndex(Connection& connection) : connection_(connection) {}

  /// A message can be claimed from here on, in its turn; `range` as `ready_half` or `suspect_half` gives it.
  void put(std::int64_t range, const Place& place) { insert_.bind(range, place.first, place.second).run(); }
  void take(std::int64_t range, const Place& place) { delete_.bind(range, place.first, place.second).run(); }

  /// Before what has ended is asked for: looks whether the wall clock was set forward.
  void look(WallTime wall, SteadyTime steady) { steps_.look(wall, steady); }
  /// The seqs of those whose lease or delay has ended, kBringBackLimit at most, which can be claimed again.
  std::vector<std::int64_t> due(std::int64_t half, WallTime now);
  /// So that a million of them do not come in one transaction.
  static constexpr std::size_t kBringBackLimit = 5'000;
  /// The first that can be claimed at `now`.
  std::optional<Place> first(std::int64_t range, WallTime now);
  /// When the next one comes due by itself, for a half without any that is due at `now`.
  std::optional<WallTime> next_due(std::int64_t half, WallTime now);
  /// The sent_at of the first message of a half, in whatever state; nothing when it is empty. `ordered`: where an order
  /// is kept, which takes a look at all of it.
  std::optional<WallTime> front(std::int64_t half, bool ordered);
  /// How many more may be claimed at `now` where `limit` may be in flight; reads as many entries as are.
  std::uint64_t room(std::int64_t half, std::uint64_t limit, WallTime now);

 private:
  /// Leases that have ended by the wall clock alone: how many, and when the first of them ends.
  struct Outlasting {
    std::uint64_t count = 0;
    std::optional<WallTime> first{};
  };
  Outlasting outlasting(std::int64_t half, WallTime now);
  /// When the lease or delay ends at whose row `due_` stands.
  WallTime end() const;

  Connection& connection_;
  ClockSteps steps_;
  Statement insert_{connection_, "INSERT OR IGNORE INTO sluice_ready VALUES (?1, ?2, ?3)"};
  Statement delete_{connection_, "DELETE FROM sluice_ready WHERE half = ?1 AND sent_at = ?2 AND seq = ?3"};
  Statement due_{connection_,
                 "SELECT seq, until, leased, updated_at FROM sluice_deliveries INDEXED BY sluice_deliveries_due "
                 "WHERE half = ?1 AND until < ?2 AND until IS NOT NULL ORDER BY until"};
  Statement first_{
      connection_,
      "SELECT sent_at, seq FROM sluice_ready WHERE half = ?1 AND sent_at <= ?2 ORDER BY sent_at, seq LIMIT 1"};
  Statement next_until_{connection_,
                        "SELECT min(until) FROM sluice_deliveries INDEXED BY sluice_deliveries_due "
                        "WHERE half = ?1 AND until IS NOT NULL AND until >= ?2"};
  Statement next_sent_{
      connection_, "SELECT min(at) FROM (" +
                       in_each_range("SELECT min(sent_at) AS at FROM sluice_ready WHERE half = % AND sent_at > ?2") +
                       ")"};
  Statement front_{connection_,
                   "SELECT min(at) FROM (" +
                       in_each_range("SELECT min(sent_at) AS at FROM sluice_ready WHERE half = %") +
                       " UNION ALL SELECT min(sent_at) FROM sluice_deliveries INDEXED BY sluice_deliveries_due "
                       "WHERE half = ?1 AND until IS NOT NULL)"};
  Statement front_ordered_{connection_, "SELECT min(m.sent_at) FROM (" + all_of_half() +
                                            ") AS p CROSS JOIN sluice_messages AS m ON m.seq = p.seq"};
  Statement in_flight_{
      connection_,
      "SELECT count(*) FROM (SELECT 1 FROM sluice_deliveries WHERE half = ?1 AND until IS NOT NULL AND "
      "until >= ?2 AND leased = 1 LIMIT ?3)"};
};

}  // namespace sluice::queue::sqlite
