#pragma once

#include <memory>
#include <vector>

#include "host/queue/operator.hpp"
#include "host/stores/leased/leased_queue.hpp"
#include "host/stores/owned/ownership_coordinator.hpp"

namespace sluice::queue::leased {

/// Asks the hosts for all shards of these halves of a queue, to carry their messages elsewhere. The references outlive
/// it.
std::unique_ptr<MoveOwnership> own_to_move(const std::vector<Half>& halves,
                                           const owned::OwnershipCoordinator::Settings& keeping, LeasedQueue& queue,
                                           owned::Remarks& remarks, const Clock& machine);

}  // namespace sluice::queue::leased
