#pragma once

#include <array>
#include <cstdint>

#include "base/clock.hpp"
#include "host/cost/spent.hpp"

namespace sluice::cost {

/// What was used in the last hour, by the minute. Not thread-safe: its owner's lock guards it.
class HourRing {
 public:
  void add(const Usage& usage, SteadyTime now);
  /// The minute that `now` lies in and the 59 before it.
  Usage sum(SteadyTime now) const;

 private:
  static constexpr std::size_t kMinutes = 60;
  struct Minute {
    std::int64_t number = -1;  ///< since the clock's epoch
    Usage usage;
  };

  std::array<Minute, kMinutes> minutes_{};
};

}  // namespace sluice::cost
