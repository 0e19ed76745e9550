#include "host/stores/sqlite/priority_scheduler.hpp"

#include <algorithm>

namespace sluice::queue::sqlite {

// Each one that waits gains its weight; who has most is next and pays what all of them gained.
std::optional<std::size_t> PriorityScheduler::next(std::int64_t half, const ClaimRules& rules,
                                                   const std::array<bool, kPriorities>& waits) {
  auto& credits = credits_[half];
  std::int64_t gained = 0;
  std::optional<std::size_t> next;
  for (std::size_t i = 0; i < kPriorities; ++i) {
    if (!waits[i]) {
      continue;
    }
    const std::int64_t weight = std::max<std::int64_t>(1, rules.weights[i]);
    credits[i] += weight;
    gained += weight;
    if (!next || credits[i] > credits[*next]) {
      next = i;
    }
  }
  if (next) {
    credits[*next] -= gained;
  }
  return next;
}

}  // namespace sluice::queue::sqlite
