// What a ShardBook knows of what may be at work: how far it reaches in its own shards, and what owners who died may
// have had at work in those that they left behind.

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/guard.hpp"
#include "host/stores/leased/shard_book.hpp"

namespace sluice::queue::leased {

// What is not out lies before what is, as whoever takes the shard finds it.
std::uint32_t ShardBook::places_of(const Entry& entry) { return SLUICE_GUARD(leased_reach) || entry.out ? 1 : 0; }

void ShardBook::take_shard(std::uint32_t shard, const Reach& reach, WallTime until) {
  Shard& taken = shards_[shard];
  taken.open = true;
  for (Lane& lane : taken.lanes) {
    lane.inheritance = SLUICE_GUARD(leased_suspects) ? Inheritance(reach, until) : Inheritance();
  }
}

void ShardBook::reopen_shard(std::uint32_t shard) { shards_[shard].open = true; }

// What was read of it is about to be dropped. Should it stay after all, it is counted anew.
void ShardBook::keep_inheritance(std::uint32_t shard) {
  Shard& closed = shards_.at(shard);
  for (std::size_t priority = 0; priority < kPriorities; ++priority) {
    Inheritance& inheritance = closed.lanes[priority].inheritance;
    if (inheritance.any()) {
      inheritance = Inheritance(measured(shard, priority, {.inherited = true}).reach, inheritance.until());
    }
  }
}

ShardBook::Lane& ShardBook::lane_of(Shard& shard, const std::string& sort) {
  return shard.lanes[static_cast<std::size_t>(priority_of(sort))];
}

bool ShardBook::is_inherited(const Entry& entry, const Shard& shard) {
  const auto priority = static_cast<std::size_t>(priority_of(entry.candidate.place.sort));
  return !entry.known && shard.lanes[priority].inheritance.concerns(entry.candidate);
}

bool ShardBook::is_suspect(const Entry& entry) const {
  return entry.candidate.suspect || entry.candidate.received || is_inherited(entry, shards_.at(entry.shard));
}

void ShardBook::read_to_end(std::uint32_t shard) {
  if (const auto mine = shards_.find(shard); mine != shards_.end()) {
    for (Lane& lane : mine->second.lanes) {
      lane.inheritance.read_to_end();
    }
  }
}

void ShardBook::read_wholly(std::uint32_t shard) {
  const auto mine = shards_.find(shard);
  const bool cut = std::any_of(lines_.begin(), lines_.end(), [](const auto& line) { return line.second.cut; });
  if (mine == shards_.end() || cut || mine->second.doubtful || !inherits(shard)) {
    return;
  }
  std::array<bool, kPriorities> left{};
  for (auto found = entries_.lower_bound({shard, {}}); found != entries_.end() && found->first.first == shard;
       ++found) {
    const Entry& entry = found->second;
    // One that is out as a suspect may come to be read anew.
    bool& any = left[static_cast<std::size_t>(priority_of(found->first.second))];
    any = any || entry.inherited || is_inherited(entry, mine->second);
  }
  for (std::size_t priority = 0; priority < kPriorities; ++priority) {
    if (!left[priority]) {
      mine->second.lanes[priority].inheritance = Inheritance();
    }
  }
}

bool ShardBook::inherits(std::uint32_t shard) const {
  const auto found = shards_.find(shard);
  return found != shards_.end() && std::any_of(found->second.lanes.begin(), found->second.lanes.end(),
                                               [](const Lane& lane) { return lane.inheritance.any(); });
}

Reach ShardBook::behind_dropped(const Reach& reach, const Shard& shard) {
  Reach behind = reach;
  behind.places += reach.places > 0 ? shard.dropped : 0;
  behind.in_group += reach.in_group > 0 ? shard.dropped : 0;
  return behind;
}

void ShardBook::count_from(Lane& lane, Lane&& anew) {
  lane.bound = anew.bound;
  lane.highest = std::move(anew.highest);
  lane.groups = std::move(anew.groups);
}

// What is in memory is counted, and what is known to lie in the table beside that. What was moved to the front is not:
// it may come before anything at any time, and is a suspect anyway.
ShardBook::Measured ShardBook::measured(std::uint32_t shard, std::size_t priority, const Measure& what) const {
  const Shard& of = shards_.at(shard);
  const std::string from = first_sort_key(static_cast<Priority>(priority), kFrontEnd);
  std::unordered_map<std::string_view, std::uint32_t> groups;
  std::vector<std::string_view> behind;  // the highest that is out, of a group
  std::uint32_t places = 0;
  Measured measured;
  Lane& lane = measured.lane;
  for (auto found = entries_.lower_bound({shard, from});
       found != entries_.end() && found->first.first == shard && found->first.second.front() == from.front(); ++found) {
    const Entry& entry = found->second;
    places += places_of(entry);
    const std::string& group = entry.candidate.group;
    const std::uint32_t in_group = group.empty() ? 0 : ++groups[group];
    if (!group.empty()) {
      behind.push_back(group);
    }
    if (entry.out || &entry == what.added || (what.inherited && is_inherited(entry, of))) {
      lane.bound = lane.bound | Reach{places, in_group, entry.fresh};
      lane.highest = found->first.second;
      for (const std::string_view name : std::exchange(behind, {})) {
        ++lane.groups[std::string(name)];
      }
    }
  }
  Reach& reach = measured.reach = behind_dropped(lane.bound, of);
  const Inheritance& inheritance = of.lanes[priority].inheritance;
  if (what.inherited && inheritance.any()) {
    const std::uint32_t unread = inheritance.unread();
    const Reach left{places + of.dropped + unread, inheritance.reach().in_group, false};
    reach = reach | (unread > 0 ? left : Reach{}) | Reach{.places = 1, .fresh = inheritance.reach().fresh};
  }
  return measured;
}

Reach ShardBook::left_in(std::uint32_t shard) const {
  Reach reach{.places = 1};
  for (std::size_t priority = 0; shards_.contains(shard) && priority < kPriorities; ++priority) {
    reach = reach | measured(shard, priority, {.inherited = true}).reach;
  }
  return reach;
}

Reach ShardBook::reach() {
  Reach reach;
  for (auto& [number, shard] : shards_) {
    for (std::size_t priority = 0; priority < kPriorities; ++priority) {
      Measured anew = measured(number, priority, {});
      reach = reach | anew.reach;
      count_from(shard.lanes[priority], std::move(anew.lane));
    }
  }
  return reach;
}

Reach ShardBook::expected(std::size_t more) const {
  Reach reach;
  for (const auto& [number, shard] : shards_) {
    for (const Lane& lane : shard.lanes) {
      reach = reach | behind_dropped(lane.bound, shard);
    }
  }
  reach = reach | refused_.value_or(Reach{});
  reach.places += static_cast<std::uint32_t>(std::min<std::size_t>(more, entries_.size()));
  return reach;
}

// From what is known to what goes out all is counted, which is cheap where messages go out by their keys. Only where
// that comes to more than is allowed it is counted anew from the head.
bool ShardBook::may_reach(const Entry& entry, const Reach& allowed) {
  const Candidate& candidate = entry.candidate;
  const std::string& sort = candidate.place.sort;
  const std::size_t priority = static_cast<std::size_t>(priority_of(sort));
  Shard& of = shards_.at(entry.shard);
  Lane& lane = of.lanes[priority];
  Reach bound = lane.bound | Reach{.fresh = entry.fresh};
  if (sort > lane.highest) {
    const std::string from = std::max(lane.highest, first_sort_key(static_cast<Priority>(priority), kFrontEnd));
    for (auto found = entries_.upper_bound({entry.shard, from});
         found != entries_.end() && found->first <= entry.spot(); ++found) {
      bound.places += places_of(found->second);
      if (const std::string& group = found->second.candidate.group; !group.empty()) {
        ++lane.groups[group];
      }
    }
    lane.highest = sort;
    lane.bound.places = bound.places;
  }
  if (!candidate.group.empty()) {
    bound.in_group = std::max(bound.in_group, lane.groups[candidate.group]);
  }
  if (allowed.covers(behind_dropped(bound, of))) {
    lane.bound = bound;
    return true;
  }
  Measured anew = measured(entry.shard, priority, {.added = &entry});
  if (!allowed.covers(anew.reach)) {
    refused_ = anew.reach;
    return false;
  }
  count_from(lane, std::move(anew.lane));
  return true;
}

void ShardBook::count_in(Shard& shard, const Entry& entry, bool yes) {
  const std::string& sort = entry.candidate.place.sort;
  Lane& lane = lane_of(shard, sort);
  if (sort > lane.highest || due_of(sort) < kFrontEnd) {
    return;
  }
  const std::string& group = entry.candidate.group;
  if (yes) {
    lane.bound.places += places_of(entry);
    if (!group.empty()) {
      ++lane.bound.in_group;
      ++lane.groups[group];
    }
    return;
  }
  if (lane.bound.places > 0) {
    lane.bound.places -= places_of(entry);
  }
  // How far what is out of the group reaches now is known once it is counted anew.
  if (const auto counted = lane.groups.find(group); counted != lane.groups.end() && counted->second > 0) {
    --counted->second;
  }
}

void ShardBook::dropped(std::uint32_t shard) { ++shards_.at(shard).dropped; }

}  // namespace sluice::queue::leased
