#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "base/clock.hpp"

namespace sluice::cli {

/// How fast a queue grows or shrinks, from looks at it. A value.
class QueuePace {
 public:
  void add(SteadyTime now, std::uint64_t total);

  /// Messages a second over the last looks, negative where the queue shrinks; nothing before there are two.
  std::optional<double> per_second() const;
  /// When it is empty at that pace; nothing where it does not shrink.
  std::optional<Duration> empty_in() const;

 private:
  std::deque<std::pair<SteadyTime, std::uint64_t>> looks_;
};

}  // namespace sluice::cli
