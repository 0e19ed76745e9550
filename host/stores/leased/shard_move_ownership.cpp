#include "host/stores/leased/shard_move_ownership.hpp"

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/leased_writes.hpp"
#include "host/stores/leased/owned_backlog.hpp"

namespace sluice::queue::leased {

void MovedHalf::own(std::span<const ShardHolder::Shard> shards, std::uint32_t all, SteadyTime /*now*/) {
  const MutexLock lock(mutex_);
  changes_ += std::exchange(all_, all) == all ? 0 : 1;
  std::map<std::uint32_t, Shard> mine;
  for (const ShardHolder::Shard& given : shards) {
    const auto known = shards_.find(given.number);
    if (known == shards_.end()) {
      ++changes_;
      mine[given.number] = {.left = given.left, .until = parts_.clock.wall_now(), .number = changes_};
    } else {
      mine[given.number] = known->second;
    }
    mine[given.number].epoch = given.epoch;
    mine[given.number].closing = given.closing;
  }
  changes_ += static_cast<std::uint64_t>(std::count_if(
      shards_.begin(), shards_.end(), [&mine](const auto& shard) { return !mine.contains(shard.first); }));
  shards_ = std::move(mine);
}

std::optional<InFlightBound> MovedHalf::left_in(std::uint32_t shard) {
  const MutexLock lock(mutex_);
  const auto found = shards_.find(shard);
  return found == shards_.end() || found->second.in_use ? std::nullopt : std::optional(found->second.left);
}

// What lies there it does not know, so that whoever wants to know counts.
OwnerFigures MovedHalf::figures(SteadyTime /*now*/) const {
  const MutexLock lock(mutex_);
  const auto shards = static_cast<std::uint32_t>(shards_.size());
  return {.unread = std::max(1U, shards), .shards = shards};
}

std::set<std::uint32_t> MovedHalf::held() const {
  const MutexLock lock(mutex_);
  std::set<std::uint32_t> held;
  for (const auto& [number, shard] : shards_) {
    if (shard.is_held()) {
      held.insert(number);
    }
  }
  return held;
}

MoveOwnership::Progress MovedHalf::progress() const {
  const std::size_t shards = held().size();
  const MutexLock lock(mutex_);
  return {.held = shards, .all = all_, .changes = changes_};
}

std::optional<OwnerFence> MovedHalf::begin(std::uint32_t shard) {
  const MutexLock lock(mutex_);
  const auto found = shards_.find(shard);
  if (found == shards_.end() || !found->second.is_held()) {
    return std::nullopt;
  }
  found->second.in_use = true;
  return OwnerFence{{ownership_partition(address_.queue, address_.half), ownership_sort(shard)}, found->second.epoch};
}

void MovedHalf::end() {
  const MutexLock lock(mutex_);
  for (auto& [number, shard] : shards_) {
    shard.in_use = false;
  }
}

void MovedHalf::mark_suspects(Deadline deadline) {
  std::map<std::uint32_t, Shard> shards;
  {
    const MutexLock lock(mutex_);
    shards = shards_;
  }
  for (const auto& [number, shard] : shards) {
    bool marked = shard.left > 0;
    for (std::size_t priority = 0; marked && priority < kPriorities; ++priority) {
      marked = mark(number, shard, static_cast<Priority>(priority), deadline);
    }
    if (!marked) {
      continue;
    }
    const MutexLock lock(mutex_);
    if (const auto found = shards_.find(number); found != shards_.end() && found->second.number == shard.number) {
      found->second.left = 0;
      ++changes_;
    }
  }
}

// As an owner would take them for suspects. Whatever went otherwise is looked at again.
bool MovedHalf::mark(std::uint32_t shard, const Shard& doubtful, Priority priority, Deadline deadline) {
  const auto candidates = in_doubt(shard, doubtful, priority, deadline);
  if (!candidates) {
    return false;
  }
  std::vector<table::RecordWrite> writes;
  for (const Candidate& candidate : *candidates) {
    if (!candidate.suspect) {
      writes.push_back(update_message(place_.table, {candidate.place, candidate.version}, parts_.nonces.anonymous(),
                                      parts_.clock.wall_now(),
                                      {{{attribute::kSuspect, dynamo::AttributeValue::number(1)}}, {}}, false));
    }
  }
  const auto outcomes = parts_.runner.run(std::move(writes), table::Repetition::until_known, deadline);
  return std::all_of(outcomes.begin(), outcomes.end(),
                     [](const auto& outcome) { return outcome.fate == table::StatementFate::done; });
}

std::optional<std::vector<Candidate>> MovedHalf::in_doubt(std::uint32_t shard, const Shard& doubtful, Priority priority,
                                                          Deadline deadline) const {
  auto query = range_query(place_.table, partition_of(address_.queue, address_.half, shard),
                           first_sort_key(priority, WallTime{}), last_sort_key(priority, doubtful.until), true);
  OrphanedRange orphaned(doubtful.left, doubtful.until);
  std::vector<Candidate> read;
  do {
    auto page = parts_.client.query(query, deadline);
    if (!page) {
      return std::nullopt;
    }
    for (const dynamo::Item& item : page->items) {
      Candidate candidate = Candidate::of(item);
      if (candidate.odd.empty()) {
        orphaned.saw(candidate.place.sort);
        read.push_back(std::move(candidate));
      }
    }
    query.exclusive_start_key = std::move(page->last_evaluated_key);
  } while (!orphaned.is_read() && !query.exclusive_start_key.empty());
  // What concerns whom is known once all has been counted.
  std::erase_if(read, [&orphaned](const Candidate& candidate) { return !orphaned.concerns(candidate); });
  return read;
}

/// The queue's own operator, but for its lists; and what is being taken is taken as long as its shard is held.
class ShardMoveOwnership::HeldOperator final : public LeasedOperator {
 public:
  HeldOperator(ShardMoveOwnership& ownership, LeasedParts parts, LeasedQueue& queue, Doorbell& doorbell)
      : LeasedOperator(parts, queue, doorbell,
                       [&ownership](const std::string& id) {
                         const auto fence = ownership.taking_.find(id);
                         return fence == ownership.taking_.end() ? std::nullopt : std::optional(fence->second);
                       }),
        ownership_(ownership) {}

  Result<ListPage> list(const ListRequest& request, Deadline deadline) override {
    Scope scope;
    if (const auto half = ownership_.halves_.find(request.half); half != ownership_.halves_.end()) {
      scope.shards = half->second->held();
    }
    ownership_.listed_.clear();
    auto page = LeasedOperator::list(request, deadline, &scope);
    for (auto& [id, shard] : scope.found) {
      ownership_.listed_.emplace(id, std::pair(request.half, shard));
    }
    return page;
  }

 private:
  ShardMoveOwnership& ownership_;
};

ShardMoveOwnership::ShardMoveOwnership(Settings settings, LeasedParts parts, LeasedQueue& queue, Doorbell& doorbell,
                                       const Clock& machine)
    : coordinator_(std::move(settings.keeping), parts.store.client, machine, parts.store.clock),
      operator_(std::make_unique<HeldOperator>(*this, parts, queue, doorbell)) {
  for (const Half half : settings.halves) {
    auto& moved = halves_[half];
    moved =
        std::make_unique<MovedHalf>(QueueAddress{queue.place.queue, half}, settings.shards, parts.store, queue.place);
    coordinator_.join(*moved);
  }
}

ShardMoveOwnership::~ShardMoveOwnership() { give_back(); }

void ShardMoveOwnership::tend(Deadline deadline) {
  coordinator_.tend(deadline);
  for (const auto& [half, moved] : halves_) {
    moved->mark_suspects(deadline);
  }
}

MoveOwnership::Progress ShardMoveOwnership::standing(Half half) const {
  const auto found = halves_.find(half);
  return found == halves_.end() ? Progress{} : found->second->progress();
}

// As a host starts no handler in the last third of a lease, nothing is taken in it. Should this process be frozen from
// here on until the lease has run out, what it writes then is refused by the fence.
bool ShardMoveOwnership::may_take(const std::string& id) {
  const auto found = listed_.find(id);
  if (found == listed_.end() || !coordinator_.lease().may_start()) {
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
  for (const auto& [half, moved] : halves_) {
    moved->end();
  }
}

bool ShardMoveOwnership::give_back() {
  if (std::exchange(given_back_, true)) {
    return true;
  }
  taken();
  bool all = true;
  for (const auto& [half, moved] : halves_) {
    all = coordinator_.leave(*moved, [] { return false; }) && all;
  }
  for (const auto& [half, moved] : halves_) {
    coordinator_.forget(*moved);
  }
  return all;
}

}  // namespace sluice::queue::leased
