#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/clock.hpp"
#include "host/queue/message.hpp"

namespace sluice::queue::owned {

/// Where a message lies among the shards of its half.
using Spot = std::pair<std::uint32_t, std::string>;  // shard, sort key

/// When a message has its turn beside others of its priority.
struct Turn {
  WallTime at{};
  Spot spot;
  /// What has come at the same time goes as its keys say, in whichever shard it is.
  friend auto operator<=>(const Turn& a, const Turn& b) {
    return std::tie(a.at, a.spot.second, a.spot.first) <=> std::tie(b.at, b.spot.second, b.spot.first);
  }
  friend bool operator==(const Turn&, const Turn&) = default;
};

/// Whose turn it is: each priority has as many turns as its weight says, and within one the oldest goes first. Not
/// thread-safe.
class PriorityScheduler {
 public:
  void add(Priority priority, const Turn& turn) { ready_[static_cast<std::size_t>(priority)].insert(turn); }
  void remove(Priority priority, const Turn& turn) { ready_[static_cast<std::size_t>(priority)].erase(turn); }
  void clear();
  std::size_t size() const;
  /// The next of those that may go; it keeps its place until it is removed.
  std::optional<Turn> next(const std::array<std::uint16_t, kPriorities>& weights,
                           const std::function<bool(const Spot&)>& may_go);

 private:
  std::array<std::set<Turn>, kPriorities> ready_;
  std::array<std::int64_t, kPriorities> credit_{};
};

}  // namespace sluice::queue::owned
