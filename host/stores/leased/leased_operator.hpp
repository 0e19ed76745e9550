#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "host/queue/operator.hpp"
#include "host/stores/leased/leased_queue.hpp"

namespace sluice::queue::leased {

/// The shards of whoever carries their messages elsewhere.
struct HeldShards {
  /// What holds as long as that shard is held; nothing: it is not.
  std::function<std::optional<OwnerFence>(Half half, std::uint32_t shard)> fence_of;
  /// Messages are being taken: what is changed now is to hold only as long as its shard is held.
  bool taking = false;
};

/// A change of visibility is a write in place, 1 write unit for each KB, a removal the same; one that has a fence is a
/// transaction with a check of it, at twice that and 2 for each fence. All other changes give the message another place
/// in the order or another half, which is another key: a transaction that removes it, puts it there and has its alias
/// say where, 6 write units. So is an edit of a priority, or of a group whose messages lie in another shard.
///
/// With `held`, it lists these shards only. The references outlive it.
std::unique_ptr<Operator> make_leased_operator(LeasedQueue& queue, const HeldShards* held = nullptr);

}  // namespace sluice::queue::leased
