#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "host/operate/bulk_run.hpp"

namespace sluice::cli {

/// How fast a bulk run goes, and how long it will take. A value that is told the time.
class BulkProgress {
 public:
  /// `expected`: the messages that it will change, where somebody has counted them.
  BulkProgress(SteadyTime began, std::optional<std::uint64_t> expected) : began_(began), expected_(expected) {}

  /// ", 48/s, 20s left"; empty as long as nothing can be said.
  std::string text(const operate::BulkCount& count, SteadyTime now) const;

 private:
  SteadyTime began_;
  std::optional<std::uint64_t> expected_;
};

}  // namespace sluice::cli
