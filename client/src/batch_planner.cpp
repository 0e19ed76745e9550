#include "client/src/batch_planner.hpp"

#include <algorithm>

namespace sluice::client::detail {

BatchOrder BatchPlanner::next(std::size_t queued, SteadyTime oldest, bool hurry, SteadyTime now) const {
  if (queued == 0) {
    return {};
  }
  if (hurry) {
    return {.take = std::min(queued, lot_)};
  }
  if (queued >= kBatch) {
    return {.take = std::min(queued - queued % kBatch, lot_)};
  }
  // Compared so that no sum can overflow, however long somebody wants to linger.
  if (now - oldest >= linger_) {
    return {.take = queued};
  }
  const Duration left = linger_ - (now - oldest);
  return {.take = 0, .wait_until = left < SteadyTime::max() - now ? now + left : SteadyTime::max()};
}

}  // namespace sluice::client::detail
