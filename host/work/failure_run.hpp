#pragma once

#include <cstdint>
#include <utility>

#include "base/clock.hpp"

namespace sluice::work {

/// Failures of one kind of call in a row, logged at the first, then once a minute, so that a store that is down for the
/// night does not fill the disk. Not thread-safe.
class FailureRun {
 public:
  /// One more; true when it should be logged.
  bool failed(SteadyTime now) {
    if (count_++ > 0 && now - logged_at_ < kLogEvery) {
      return false;
    }
    logged_at_ = now;
    return true;
  }
  /// A call went well; true when that ended a run, which should be logged.
  bool succeeded() { return std::exchange(count_, 0) > 0; }

  bool going_on() const { return count_ > 0; }

 private:
  static constexpr Duration kLogEvery = std::chrono::minutes(1);

  std::uint64_t count_ = 0;
  SteadyTime logged_at_{};
};

}  // namespace sluice::work
