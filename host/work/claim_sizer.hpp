#pragma once

#include <cstddef>

#include "base/clock.hpp"

namespace sluice::work {

/// The largest claim, and the most that wait in memory for a worker.
inline constexpr std::size_t kMaxClaim = 1000;
/// What is claimed should start within this time: a message that waits in memory is a lease burning.
inline constexpr Duration kStartHorizon = std::chrono::milliseconds(100);
/// Bodies that wait in memory for a worker, in bytes; free workers are served beyond it.
inline constexpr std::size_t kClaimBytes = 16U << 20U;
/// The most messages that a worker takes at a time, and how long they may take it.
inline constexpr std::size_t kMaxHandful = 64;
inline constexpr Duration kHandfulTime = std::chrono::milliseconds(1);

/// Learns how long handlers take and how large messages are, and says how much to claim and to hand out. Not
/// thread-safe.
class ClaimSizer {
 public:
  struct Pool {
    std::size_t free = 0;    ///< workers without work
    std::size_t active = 0;  ///< free ones and those that come back soon; not those deep in a long attempt
    std::size_t queued = 0;  ///< messages claimed but not handed to a worker
    std::size_t asking = 0;  ///< beside these, whose keys are being asked for: quick workers need others meanwhile
  };

  /// `count` handlers took `total` together.
  void handled(Duration total, std::size_t count);
  void received(std::size_t bytes, std::size_t count);

  /// How much to claim now; 0 while the queue in memory is more than half full, so that claims stay large.
  std::size_t room(const Pool& pool) const;
  /// How many messages to hand to one worker: one at a time when handlers are slow.
  std::size_t handful(std::size_t queued, std::size_t workers) const;
  /// Mean time of a handler; Duration::max() before the first.
  Duration handler_time() const;

 private:
  double seconds_ = -1;
  double bytes_ = 0;
};

}  // namespace sluice::work
