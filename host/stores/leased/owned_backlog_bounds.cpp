// What an OwnedBacklog knows of what may be at work: how far it reaches in its own shards, and what owners who died may
// have had at work in those that they left behind.

#include <algorithm>

#include "base/guard.hpp"
#include "host/stores/leased/owned_backlog.hpp"

namespace sluice::queue::leased {

// What is not out lies before what is, as whoever takes the shard finds it.
std::uint32_t OwnedBacklog::places_of(const Entry& entry) { return SLUICE_GUARD(leased_reach) || entry.out ? 1 : 0; }

void OwnedBacklog::take_shard(std::uint32_t shard, InFlightBound bound, WallTime until) {
  Shard& taken = shards_[shard];
  taken.open = true;
  for (Range& range : taken.ranges) {
    range.orphaned = SLUICE_GUARD(leased_suspects) ? OrphanedRange(bound, until) : OrphanedRange();
  }
}

void OwnedBacklog::reopen_shard(std::uint32_t shard) { shards_[shard].open = true; }

// What was read of it is about to be dropped. Should it stay after all, it is counted anew.
void OwnedBacklog::keep_inheritance(std::uint32_t shard) {
  Shard& closed = shards_.at(shard);
  for (std::size_t priority = 0; priority < kPriorities; ++priority) {
    OrphanedRange& orphaned = closed.ranges[priority].orphaned;
    if (orphaned.any()) {
      orphaned = OrphanedRange(measured(shard, priority, {.inherited = true}).bound, orphaned.until());
    }
  }
}

OwnedBacklog::Range& OwnedBacklog::range_of(Shard& shard, const std::string& sort) {
  return shard.ranges[static_cast<std::size_t>(priority_of(sort))];
}

bool OwnedBacklog::is_inherited(const Entry& entry, const Shard& shard) {
  const auto priority = static_cast<std::size_t>(priority_of(entry.candidate.place.sort));
  return !entry.known && shard.ranges[priority].orphaned.concerns(entry.candidate);
}

bool OwnedBacklog::is_suspect(const Entry& entry) const {
  return entry.candidate.suspect || entry.candidate.received || is_inherited(entry, shards_.at(entry.shard));
}

void OwnedBacklog::read_to_end(std::uint32_t shard) {
  if (const auto mine = shards_.find(shard); mine != shards_.end()) {
    for (Range& range : mine->second.ranges) {
      range.orphaned.read_to_end();
    }
  }
}

void OwnedBacklog::read_wholly(std::uint32_t shard) {
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
      mine->second.ranges[priority].orphaned = OrphanedRange();
    }
  }
}

bool OwnedBacklog::inherits(std::uint32_t shard) const {
  const auto found = shards_.find(shard);
  return found != shards_.end() && std::any_of(found->second.ranges.begin(), found->second.ranges.end(),
                                               [](const Range& range) { return range.orphaned.any(); });
}

// What was dropped may lie before anything.
InFlightBound OwnedBacklog::behind_dropped(InFlightBound bound, const Shard& shard) {
  return bound > 0 ? bound + shard.dropped : 0;
}

// What is in memory is counted, and what is known to lie in the table beside that. What was moved to the front is not:
// it may come before anything at any time, and is a suspect anyway.
OwnedBacklog::Measured OwnedBacklog::measured(std::uint32_t shard, std::size_t priority, const Measure& what) const {
  const Shard& of = shards_.at(shard);
  const std::string from = first_sort_key(static_cast<Priority>(priority), kFrontEnd);
  InFlightBound places = 0;
  Measured measured;
  for (auto found = entries_.lower_bound({shard, from});
       found != entries_.end() && found->first.first == shard && found->first.second.front() == from.front(); ++found) {
    const Entry& entry = found->second;
    places += places_of(entry);
    if (entry.out || &entry == what.added || (what.inherited && is_inherited(entry, of))) {
      measured.counted = places;
      measured.highest = found->first.second;
    }
  }
  measured.bound = behind_dropped(measured.counted, of);
  const OrphanedRange& orphaned = of.ranges[priority].orphaned;
  if (what.inherited && orphaned.any()) {
    const InFlightBound unread = orphaned.unread();
    measured.bound = std::max(measured.bound, unread > 0 ? places + of.dropped + unread : 1);
  }
  return measured;
}

InFlightBound OwnedBacklog::left_in(std::uint32_t shard) const {
  InFlightBound bound = 1;
  for (std::size_t priority = 0; shards_.contains(shard) && priority < kPriorities; ++priority) {
    bound = std::max(bound, measured(shard, priority, {.inherited = true}).bound);
  }
  return bound;
}

InFlightBound OwnedBacklog::in_flight_bound() {
  InFlightBound bound = 0;
  for (auto& [number, shard] : shards_) {
    for (std::size_t priority = 0; priority < kPriorities; ++priority) {
      Measured anew = measured(number, priority, {});
      bound = std::max(bound, anew.bound);
      shard.ranges[priority].count_from(std::move(anew));
    }
  }
  return bound;
}

InFlightBound OwnedBacklog::expected(std::size_t more) const {
  InFlightBound bound = refused_.value_or(0);
  for (const auto& [number, shard] : shards_) {
    for (const Range& range : shard.ranges) {
      bound = std::max(bound, behind_dropped(range.counted, shard));
    }
  }
  return bound + static_cast<InFlightBound>(std::min<std::size_t>(more, entries_.size()));
}

// From what is known to what goes out all is counted, which is cheap where messages go out by their keys. Only where
// that comes to more than is allowed it is counted anew from the head.
bool OwnedBacklog::may_go(const Entry& entry, InFlightBound allowed) {
  const std::string& sort = entry.candidate.place.sort;
  const std::size_t priority = static_cast<std::size_t>(priority_of(sort));
  Shard& of = shards_.at(entry.shard);
  Range& range = of.ranges[priority];
  if (sort > range.highest) {
    const std::string from = std::max(range.highest, first_sort_key(static_cast<Priority>(priority), kFrontEnd));
    for (auto found = entries_.upper_bound({entry.shard, from});
         found != entries_.end() && found->first <= entry.spot(); ++found) {
      range.counted += places_of(found->second);
    }
    range.highest = sort;
  }
  if (behind_dropped(range.counted, of) <= allowed) {
    return true;
  }
  Measured anew = measured(entry.shard, priority, {.added = &entry});
  if (anew.bound > allowed) {
    refused_ = anew.bound;
    return false;
  }
  range.count_from(std::move(anew));
  return true;
}

void OwnedBacklog::count_in(Shard& shard, const Entry& entry, bool yes) {
  const std::string& sort = entry.candidate.place.sort;
  Range& range = range_of(shard, sort);
  if (sort > range.highest || due_of(sort) < kFrontEnd) {
    return;
  }
  if (yes) {
    range.counted += places_of(entry);
  } else if (range.counted > 0) {
    range.counted -= places_of(entry);
  }
}

void OwnedBacklog::dropped(std::uint32_t shard) { ++shards_.at(shard).dropped; }

}  // namespace sluice::queue::leased
