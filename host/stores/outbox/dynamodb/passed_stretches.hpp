#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "host/stores/outbox/rows.hpp"

namespace sluice::queue::outbox {

/// Stretches of a partition of which nobody wants a row as long as certain groups wait. A query pays for all that it
/// passes over, so that such a stretch is looked at once a minute, and not with every poll. In its first minute it is
/// read all the same: rows that are committed late may come in between. Not thread-safe.
class PassedStretches {
 public:
  /// Where who would read on behind `after` may do so as well.
  std::int64_t skip(const std::string& partition, std::int64_t after, std::span<const Group> without, SteadyTime now);
  /// All rows behind `after` and up to `last` have been passed over, because these groups wait or whatever waits.
  void add(const std::string& partition, std::int64_t after, std::int64_t last, const std::set<Group>& groups,
           SteadyTime now);

 private:
  struct Stretch {
    std::int64_t last = 0;
    SteadyTime found{};
    SteadyTime read{};
    std::set<Group> groups;
  };

  std::map<std::string, std::map<std::int64_t, Stretch>> stretches_;  ///< by what they begin behind; apart
};

}  // namespace sluice::queue::outbox
