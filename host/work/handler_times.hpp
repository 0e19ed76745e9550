#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"

namespace sluice::work {

/// How long a job's handlers have taken, since it began. A value: the difference of two tells of the time between.
class HandlerTimes {
 public:
  /// `count` handlers took `each`.
  void add(Duration each, std::uint64_t count);
  /// One of them ran into its time-out, whatever came of it then.
  void timed_out() { ++time_outs_; }

  std::uint64_t count() const { return count_; }
  std::uint64_t time_outs() const { return time_outs_; }
  Duration slowest() const { return slowest_; }
  /// Of those since `before`; zero: there were none.
  Duration mean_since(const HandlerTimes& before) const;
  /// The time within which that share of them was through, to the next power of two; zero: there were none.
  Duration quantile_since(const HandlerTimes& before, double share) const;

 private:
  // Handlers of less than 2^n microseconds, and not less than half of it.
  static constexpr std::size_t kBuckets = 48;

  std::array<std::uint64_t, kBuckets> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t time_outs_ = 0;
  Duration total_{};
  Duration slowest_{};
};

}  // namespace sluice::work
