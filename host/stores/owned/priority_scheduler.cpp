#include "host/stores/owned/priority_scheduler.hpp"

#include <algorithm>

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

// Each priority that waits saves up its weight; whoever has most goes, and pays what all of them have saved.
std::optional<Turn> PriorityScheduler::next(const std::array<std::uint16_t, kPriorities>& weights,
                                            const std::function<bool(const Spot&)>& may_go) {
  std::optional<Turn> chosen;
  std::size_t chosen_priority = 0;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < kPriorities; ++i) {
    const auto first =
        std::find_if(ready_[i].begin(), ready_[i].end(), [&](const Turn& turn) { return may_go(turn.spot); });
    if (first == ready_[i].end()) {
      continue;
    }
    const auto weight = std::max<std::int64_t>(1, weights[i]);
    sum += weight;
    credit_[i] += weight;
    if (!chosen || credit_[i] > credit_[chosen_priority]) {
      chosen = *first;
      chosen_priority = i;
    }
  }
  if (chosen) {
    credit_[chosen_priority] -= sum;
  }
  return chosen;
}

}  // namespace sluice::queue::owned
