#pragma once

#include <string>

#include "base/clock.hpp"
#include "host/work/account.hpp"

namespace sluice::runtime {

/// The line of totals that `run --progress` shows. A value; used by one thread.
class ProgressLine {
 public:
  explicit ProgressLine(SteadyTime now) : last_(now) {}

  /// "12,345 done, 7 rejected, 3 in flight; 5,120/s" with the rate since the line before.
  std::string next(const work::LedgerSnapshot& total, SteadyTime now);

 private:
  SteadyTime last_;
  std::uint64_t last_ended_ = 0;
};

}  // namespace sluice::runtime
