#include "host/stores/leased/moved_half.hpp"

#include <algorithm>
#include <utility>

#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/leased_writes.hpp"

namespace sluice::queue::leased {

MovedHalf::MovedHalf(QueueAddress address, std::uint32_t shards, table::StoreParts parts,
                     const table::QueueTable& place, const std::string& host)
    : address_(std::move(address)),
      shards_(shards),
      parts_(parts),
      place_(place),
      keeper_(host, half_name(address_.queue, address_.half)) {}

std::vector<ShardKeeper::Move> MovedHalf::look(std::span<const Ownership> read, std::uint32_t /*count*/,
                                               Membership& members, SteadyTime now) {
  const MutexLock lock(mutex_);
  changes_ += all_ == read.size() ? 0 : 1;
  all_ = read.size();
  auto moves = keeper_.look(read, members, now);
  follow_keeper(read);
  return moves;
}

void MovedHalf::follow_keeper(std::span<const Ownership> read) {
  for (const std::uint32_t shard : keeper_.take_lost()) {
    mine_.erase(shard);
    doubts_.erase(shard);
    in_use_.erase(shard);
    ++changes_;
  }
  for (const std::uint32_t shard : keeper_.shards()) {
    if (!mine_.contains(shard)) {
      gain(shard, OwnershipCoordinator::left_in(read, shard));
    }
  }
}

void MovedHalf::gain(std::uint32_t shard, InFlightBound left) {
  mine_.insert(shard);
  ++changes_;
  if (left > 0) {
    doubts_.insert_or_assign(shard, Doubt{left, parts_.clock.wall_now(), changes_});
  }
}

void MovedHalf::moved(const ShardKeeper::Move& move, InFlightBound left, SteadyTime /*now*/) {
  const MutexLock lock(mutex_);
  const std::uint32_t shard = move.after.shard;
  keeper_.moved(move);
  const bool has = keeper_.keeping(shard) != ShardKeeper::Keeping::none;
  if (has && !mine_.contains(shard)) {
    gain(shard, left);
  } else if (!has && mine_.erase(shard) > 0) {
    doubts_.erase(shard);
    in_use_.erase(shard);
    ++changes_;
  }
}

std::vector<ShardKeeper::Move> MovedHalf::hand_overs() {
  const MutexLock lock(mutex_);
  std::vector<ShardKeeper::Move> moves;
  for (const std::uint32_t shard : mine_) {
    if (keeper_.keeping(shard) == ShardKeeper::Keeping::closing && !in_use_.contains(shard)) {
      moves.push_back(keeper_.hand_over(shard));
      if (const auto doubt = doubts_.find(shard); doubt != doubts_.end()) {
        moves.back().after.clean = false;
        moves.back().after.left = doubt->second.left;
      }
    }
  }
  return moves;
}

void MovedHalf::lease_lost(SteadyTime /*now*/) {
  const MutexLock lock(mutex_);
  keeper_.lease_lost();
  follow_keeper({});
}

bool MovedHalf::expects() const {
  const MutexLock lock(mutex_);
  return keeper_.expects();
}

bool MovedHalf::owns_any() const {
  const MutexLock lock(mutex_);
  return !mine_.empty();
}

// What lies there it does not know, so that whoever wants to know counts.
OwnerFigures MovedHalf::figures(SteadyTime /*now*/) const {
  const MutexLock lock(mutex_);
  const auto shards = static_cast<std::uint32_t>(mine_.size());
  return {.unread = std::max(1U, shards), .shards = shards};
}

bool MovedHalf::is_held(std::uint32_t shard) const {
  return keeper_.keeping(shard) == ShardKeeper::Keeping::owned && !doubts_.contains(shard);
}

std::set<std::uint32_t> MovedHalf::held() const {
  const MutexLock lock(mutex_);
  std::set<std::uint32_t> held;
  std::copy_if(mine_.begin(), mine_.end(), std::inserter(held, held.end()),
               [this](std::uint32_t shard) SLUICE_REQUIRES(mutex_) { return is_held(shard); });
  return held;
}

MoveOwnership::Progress MovedHalf::standing() const {
  const std::size_t shards = held().size();
  const MutexLock lock(mutex_);
  return {.held = shards, .all = all_, .changes = changes_};
}

std::optional<OwnerFence> MovedHalf::begin(std::uint32_t shard) {
  const MutexLock lock(mutex_);
  if (!is_held(shard)) {
    return std::nullopt;
  }
  in_use_.insert(shard);
  return OwnerFence{{ownership_partition(address_.queue, address_.half), ownership_sort(shard)}, keeper_.epoch(shard)};
}

void MovedHalf::end() {
  const MutexLock lock(mutex_);
  in_use_.clear();
}

void MovedHalf::mark_suspects(Deadline deadline) {
  std::map<std::uint32_t, Doubt> doubts;
  {
    const MutexLock lock(mutex_);
    doubts = doubts_;
  }
  for (const auto& [shard, doubt] : doubts) {
    if (!mark(shard, doubt, deadline)) {
      continue;
    }
    const MutexLock lock(mutex_);
    if (const auto found = doubts_.find(shard); found != doubts_.end() && found->second.number == doubt.number) {
      doubts_.erase(found);
      ++changes_;
    }
  }
}

bool MovedHalf::mark(std::uint32_t shard, const Doubt& doubt, Deadline deadline) {
  for (std::size_t priority = 0; priority < kPriorities; ++priority) {
    if (!mark(shard, static_cast<Priority>(priority), doubt, deadline)) {
      return false;
    }
  }
  return true;
}

// As an owner would take them for suspects. True: all have been written; whatever went otherwise is looked at again.
bool MovedHalf::mark(std::uint32_t shard, Priority priority, const Doubt& doubt, Deadline deadline) {
  const auto candidates = in_doubt(shard, priority, doubt, deadline);
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

std::optional<std::vector<Candidate>> MovedHalf::in_doubt(std::uint32_t shard, Priority priority, const Doubt& doubt,
                                                          Deadline deadline) const {
  dynamo::QueryRequest query;
  query.table = place_.table;
  query.key_condition = "#p = :p AND #s BETWEEN :from AND :to";
  query.names = {{"#p", std::string(attribute::kPartition)}, {"#s", std::string(attribute::kSort)}};
  query.values.emplace(":p", partition_of(address_.queue, address_.half, shard));
  query.values.emplace(":from", first_sort_key(priority, WallTime{}));
  query.values.emplace(":to", last_sort_key(priority, doubt.until));
  query.consistent = true;
  OrphanedRange orphaned(doubt.left, doubt.until);
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

}  // namespace sluice::queue::leased
