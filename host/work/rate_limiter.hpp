#pragma once

#include <cstddef>

#include "base/clock.hpp"

namespace sluice::work {

/// A token bucket that gates claims, so that nothing is claimed only to wait for its turn. Holds a tenth of a second's
/// worth, at least one token. Not thread-safe: a step class that is given the time.
class RateLimiter {
 public:
  /// `rate` messages a second; 0 or less: no limit.
  RateLimiter(double rate, SteadyTime now);

  /// How many messages may be claimed now.
  std::size_t available(SteadyTime now);
  /// Takes tokens for a claim.
  void take(std::size_t count);
  /// Gives back what a claim did not find.
  void refund(std::size_t count);
  /// When it is worth looking again after `available` said 0: half a bucket is there, so that high rates claim in
  /// batches instead of message by message.
  SteadyTime next(SteadyTime now) const;

 private:
  void refill(SteadyTime now);

  double rate_;
  double capacity_;
  double tokens_;
  SteadyTime filled_at_;
};

}  // namespace sluice::work
