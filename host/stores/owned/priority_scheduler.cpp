#include "host/stores/owned/priority_scheduler.hpp"

#include <algorithm>

#include "host/queue/weighted_turns.hpp"

namespace sluice::queue::owned {

void PriorityScheduler::clear() {
  for (auto& ready : ready_) {
    ready.clear();
  }
}

std::size_t PriorityScheduler::size() const {
  std::size_t all = 0;
  for (const auto& ready : ready_) {
    all += ready.size();
  }
  return all;
}

std::optional<Turn> PriorityScheduler::next(const std::array<std::uint16_t, kPriorities>& weights,
                                            const std::function<bool(const Spot&)>& may_go) {
  std::array<std::optional<Turn>, kPriorities> first;
  for (std::size_t i = 0; i < kPriorities; ++i) {
    const auto found =
        std::find_if(ready_[i].begin(), ready_[i].end(), [&](const Turn& turn) { return may_go(turn.spot); });
    if (found != ready_[i].end()) {
      first[i] = *found;
    }
  }
  const auto next = next_turn(
      credit_, [&weights](std::size_t i) { return std::max<std::int64_t>(1, weights[i]); },
      [&first](std::size_t i) { return first[i].has_value(); });
  return next ? first[*next] : std::nullopt;
}

}  // namespace sluice::queue::owned
