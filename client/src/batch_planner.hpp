#pragma once

#include <cstddef>

#include "base/clock.hpp"

namespace sluice::client::detail {

/// What a producer's thread does next: send the oldest `take` messages, or else wait, at the latest until `wait_until`.
struct BatchOrder {
  std::size_t take = 0;
  SteadyTime wait_until = SteadyTime::max();
};

/// Decides when waiting for company is over. A value; pure.
class BatchPlanner {
 public:
  /// Messages of one request: what BatchExecuteStatement takes.
  static constexpr std::size_t kBatch = 25;

  /// `lot`: most messages of one call of the store, which sends their batches side by side.
  BatchPlanner(Duration linger, std::size_t lot) : linger_(linger), lot_(lot) {}

  /// Whole batches go at once, and what does not fill one when its oldest has lingered, or somebody waits for it.
  BatchOrder next(std::size_t queued, SteadyTime oldest, bool hurry, SteadyTime now) const;

 private:
  Duration linger_;
  std::size_t lot_;
};

}  // namespace sluice::client::detail
