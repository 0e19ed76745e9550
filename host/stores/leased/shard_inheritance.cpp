// What a ShardBook knows of those who had its shards before: what may have been at work in an owner who died.

#include <algorithm>

#include "base/guard.hpp"
#include "host/stores/leased/shard_book.hpp"

namespace sluice::queue::leased {

void ShardBook::take_shard(std::uint32_t shard, std::size_t suspects, WallTime until) {
  Shard& taken = shards_[shard];
  taken.open = true;
  taken.suspects_left.fill(SLUICE_GUARD(leased_suspects) ? suspects : 0);
  taken.inherited_until = until;
}

void ShardBook::reopen_shard(std::uint32_t shard) { shards_[shard].open = true; }

// What waited for a later time cannot have been at work: it is no suspect, and takes nobody's place.
bool ShardBook::is_inherited(const Entry& entry, const Shard& shard) {
  const Candidate& candidate = entry.candidate;
  return !entry.known && std::max(candidate.due, candidate.not_before.value_or(WallTime{})) <= shard.inherited_until;
}

bool ShardBook::is_suspect(const Entry& entry) const {
  if (entry.candidate.suspect || entry.candidate.received) {
    return true;
  }
  const Shard& shard = shards_.at(entry.shard);
  return shard.suspects_left[entry.priority()] > 0 && is_inherited(entry, shard);
}

void ShardBook::read_wholly(std::uint32_t shard) {
  const auto mine = shards_.find(shard);
  const bool cut = std::any_of(lines_.begin(), lines_.end(), [](const auto& line) { return line.second.cut; });
  if (mine == shards_.end() || cut) {
    return;
  }
  std::array<bool, kPriorities> waits{};
  for (auto found = entries_.lower_bound({shard, {}}); found != entries_.end() && found->first.first == shard;
       ++found) {
    const Entry& entry = found->second;
    // One that is out as a suspect may come to be read anew.
    waits[entry.priority()] = waits[entry.priority()] || entry.placed || is_inherited(entry, mine->second);
  }
  for (std::size_t priority = 0; priority < kPriorities; ++priority) {
    if (!waits[priority]) {
      mine->second.suspects_left[priority] = 0;
    }
  }
}

std::size_t ShardBook::inherited(std::uint32_t shard) const {
  const auto found = shards_.find(shard);
  if (found == shards_.end()) {
    return 0;
  }
  const auto& left = found->second.suspects_left;
  return *std::max_element(left.begin(), left.end());
}

std::size_t ShardBook::most_inherited() const {
  std::size_t most = 0;
  for (const auto& [number, shard] : shards_) {
    most = std::max(most, inherited(number));
  }
  return most;
}

}  // namespace sluice::queue::leased
