#include "host/stores/leased/shard_move_ownership.hpp"

#include <utility>

#include "base/guard.hpp"
#include "host/stores/leased/leased_operator.hpp"

namespace sluice::queue::leased {
/// The queue's own operator, but for its lists; and what is being taken is taken as long as its shard is held.
class ShardMoveOwnership::HeldOperator final : public Operator {
 public:
  HeldOperator(ShardMoveOwnership& ownership, LeasedParts parts, LeasedQueue& queue, Doorbell& doorbell)
      : custody_(ownership),
        all_(parts, queue, doorbell,
             [&ownership](const std::string& id) {
               const auto fence = ownership.taking_.find(id);
               return fence == ownership.taking_.end() ? std::nullopt : std::optional(fence->second);
             }),
        inspector_(parts, queue) {}

  Result<ListPage> list(const ListRequest& request, Deadline deadline) override {
    LeasedInspector::Scope scope;
    if (const auto half = custody_.halves_.find(request.half); half != custody_.halves_.end()) {
      scope.shards = half->second->held();
    }
    custody_.listed_.clear();
    auto page = inspector_.list(request, deadline, &scope);
    for (auto& [id, shard] : scope.found) {
      custody_.listed_.emplace(id, std::pair(request.half, shard));
    }
    return page;
  }
  Result<StoredMessage> get(const std::string& id, Deadline deadline) override { return all_.get(id, deadline); }
  Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) override {
    return all_.stats(request, deadline);
  }
  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) override {
    return all_.overview(request, deadline);
  }
  std::vector<ChangeResult> change(std::span<const Change> changes, Deadline deadline) override {
    return all_.change(changes, deadline);
  }
  Result<StoredMessage> edit(const std::string& id, std::int64_t version, std::span<const ContentEdit> edits,
                             Deadline deadline) override {
    return all_.edit(id, version, edits, deadline);
  }
  std::vector<PutResult> put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) override {
    return all_.put(records, mode, deadline);
  }

 private:
  ShardMoveOwnership& custody_;
  LeasedOperator all_;
  const LeasedInspector inspector_;
};

ShardMoveOwnership::ShardMoveOwnership(Settings settings, LeasedParts parts, LeasedQueue& queue, Doorbell& doorbell,
                                       const Clock& machine)
    : settings_(std::move(settings)),
      machine_(machine),
      keeper_(settings_.keeping, parts.store.client, machine, parts.store.clock),
      rounds_(keeper_, machine),
      operator_(std::make_unique<HeldOperator>(*this, parts, queue, doorbell)) {
  for (const Half half : settings_.halves) {
    auto& duty = halves_[half];
    duty = std::make_unique<MovedHalf>(QueueAddress{queue.place.queue, half}, settings_.shards, parts.store,
                                       queue.place, settings_.keeping.host);
    keeper_.join(*duty, Deadline::after(machine_, KeeperRounds::kCall));
  }
  if (settings_.own_thread) {
    thread_ = std::jthread([this](const std::stop_token& stop) { rounds_.run(stop); });
  }
}

ShardMoveOwnership::~ShardMoveOwnership() { give_back(); }

void ShardMoveOwnership::tend(Deadline deadline) {
  if (!settings_.own_thread) {
    keeper_.tend(false, deadline.earlier(Deadline::after(machine_, KeeperRounds::kCall)));
  }
  for (const auto& [half, duty] : halves_) {
    duty->mark_suspects(deadline);
  }
}

const MovedHalf* ShardMoveOwnership::half_of(Half half) const {
  const auto found = halves_.find(half);
  return found == halves_.end() ? nullptr : found->second.get();
}

MoveOwnership::Progress ShardMoveOwnership::standing(Half half) const {
  const MovedHalf* duty = half_of(half);
  return duty == nullptr ? Progress{} : duty->standing();
}

// As a host starts no handler in the last third of a lease, nothing is taken in it. Should this process be frozen from
// here on until the lease has run out, what it writes then is refused by the fence.
bool ShardMoveOwnership::may_take(const std::string& id) {
  const auto found = listed_.find(id);
  if (found == listed_.end() || !keeper_.may_start()) {
    return false;
  }
  const auto fence = halves_.at(found->second.first)->begin(found->second.second);
  if (fence && SLUICE_GUARD(leased_move_fence)) {
    taking_.insert_or_assign(id, *fence);
  }
  return fence.has_value();
}

void ShardMoveOwnership::taken() {
  taking_.clear();
  for (const auto& [half, duty] : halves_) {
    duty->end();
  }
}

bool ShardMoveOwnership::give_back() {
  if (std::exchange(given_back_, true)) {
    return true;
  }
  taken();
  bool all = true;
  for (const auto& [half, duty] : halves_) {
    all = rounds_.leave(*duty, [](SteadyTime) { return false; }) && all;
  }
  thread_ = {};
  for (const auto& [half, duty] : halves_) {
    keeper_.forget(*duty);
  }
  return all;
}

}  // namespace sluice::queue::leased
