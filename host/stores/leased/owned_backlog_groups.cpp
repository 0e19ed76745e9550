// How a OwnedBacklog keeps what waits: in turns, in the lines of groups, and by the times that are waited for.

#include <algorithm>
#include <iterator>
#include <utility>

#include "host/stores/leased/owned_backlog.hpp"

namespace sluice::queue::leased {
namespace {

// Of a group that is cut, so much stays in memory at first.
constexpr std::size_t kLeftOfALine = 16;

}  // namespace

bool OwnedBacklog::in_line(const Entry& entry) const {
  return rules_.order == Order::queue ||
         ((rules_.order == Order::group || rules_.fair) && !entry.candidate.group.empty());
}

// Of a queue that goes in sequence all are in one line, which has no name that a group has.
std::string OwnedBacklog::line_of(const Entry& entry) const {
  return rules_.order == Order::queue ? std::string() : entry.candidate.group;
}

void OwnedBacklog::place(Entry& entry, WallTime now) {
  const auto& until = entry.candidate.not_before;
  entry.timed = until && now <= *until;
  if (entry.timed) {
    (strict() && in_line(entry) ? line_timers_ : timers_).emplace(*until, entry.spot());
  }
  if (!in_line(entry)) {
    if (!entry.timed) {
      offer(entry, entry.candidate.due);
    }
    return;
  }
  if (strict() && !entry.sure) {
    Shard& shard = shards_.at(entry.shard);
    const std::string part = Frontier::part_of(entry.candidate.place.sort);
    entry.sure = part <= shard.frontier.settled;
    if (!entry.sure) {
      shard.unsure.emplace(part, entry.candidate.place.sort);
    }
  }
  if (strict() || !entry.timed) {
    const std::string name = line_of(entry);
    lines_[name].waiting.emplace(position_of(entry), &entry);
    count(entry, !strict());
    look_after(name);
  }
}

void OwnedBacklog::unplace(Entry& entry) {
  if (entry.timed) {
    (strict() && in_line(entry) ? line_timers_ : timers_).erase({*entry.candidate.not_before, entry.spot()});
    entry.timed = false;
  }
  withdraw(entry);
  count(entry, false);
  if (!in_line(entry)) {
    return;
  }
  const std::string name = line_of(entry);
  const auto line = lines_.find(name);
  if (line == lines_.end()) {
    return;
  }
  line->second.waiting.erase(position_of(entry));
  if (line->second.offered == &entry) {
    line->second.offered = nullptr;
  }
}

void OwnedBacklog::count(Entry& entry, bool yes) {
  if (entry.counted == yes) {
    return;
  }
  entry.counted = yes;
  std::size_t& ready = shards_.at(entry.shard).ready[entry.priority()];
  ready = yes ? ready + 1 : ready - 1;
}

void OwnedBacklog::offer(Entry& entry, WallTime at) {
  entry.offered = Turn{at, entry.spot()};
  turns_.add(entry.candidate.priority, *entry.offered);
  count(entry, true);
}

void OwnedBacklog::withdraw(Entry& entry) {
  if (entry.offered) {
    turns_.remove(entry.candidate.priority, *entry.offered);
    entry.offered.reset();
  }
}

// Brings what a line offers into line with what it holds.
void OwnedBacklog::look_after(const std::string& name) {
  const auto found = lines_.find(name);
  if (found == lines_.end()) {
    return;
  }
  GroupBacklog& line = found->second;
  Entry* head = line.waiting.empty() ? nullptr : line.waiting.begin()->second;
  const bool doubtful = line.doubt != GroupBacklog::Doubt::none;
  if (head != nullptr && strict()) {
    const bool waits =
        line.out > 0 || doubtful || head->timed || !head->sure || !shards_.at(head->shard).holds_known || is_held(name);
    head = waits ? nullptr : head;
  }
  if (line.offered != nullptr && line.offered != head) {
    withdraw(*line.offered);
    if (strict()) {
      count(*line.offered, false);
    }
    line.offered = nullptr;
  }
  if (head != nullptr && line.offered == nullptr) {
    line.offered = head;
    offer(*head, std::max(head->candidate.due, line.served_at));
  }
  if (line.waiting.empty() && line.cut && line.out == 0) {
    if (!line.parked) {
      unswept_.insert(line.cut->second.first);
    }
  } else if (line.waiting.empty() && !line.cut && line.out == 0 && !doubtful) {
    lines_.erase(found);
  }
}

void OwnedBacklog::erase(Entries::iterator found) {
  Entry& entry = found->second;
  const bool lined = in_line(entry);
  const std::string name = lined ? line_of(entry) : std::string();
  if (entry.out) {
    --out_;
    --shards_.at(entry.shard).out;
    if (lined) {
      --lines_.at(name).out;
    }
  } else {
    unplace(entry);
  }
  Shard& shard = shards_.at(entry.shard);
  if (!entry.sure && !shard.unsure.empty()) {
    shard.unsure.erase({Frontier::part_of(entry.candidate.place.sort), entry.candidate.place.sort});
  }
  --shard.entries;
  shard.bytes -= entry.bytes;
  count_in(shard, entry, false);
  entries_.erase(found);
  if (lined) {
    look_after(name);
  }
}

void OwnedBacklog::keep_bounds() {
  // Of timers the last ones go: they have the longest to wait, and a sweep finds them again.
  while (timers_.size() > bounds_.timers) {
    const Spot last = std::prev(timers_.end())->second;
    dropped(last.first);
    erase(entries_.find(last));
  }
  if (entries_.size() >= room_at_) {
    make_room();
  }
}

// The longest groups are cut first. If that is not enough, those that cannot go on leave memory altogether.
void OwnedBacklog::make_room() {
  const std::size_t goal = bounds_.entries / 4 * 3;
  std::vector<std::pair<std::size_t, std::string>> by_length;
  for (const auto& [name, line] : lines_) {
    if (!line.waiting.empty()) {
      by_length.emplace_back(line.waiting.size(), name);
    }
  }
  std::sort(by_length.rbegin(), by_length.rend());
  for (const auto& [length, name] : by_length) {
    if (entries_.size() <= goal || length <= kLeftOfALine) {
      break;
    }
    cut_line(lines_.at(name), kLeftOfALine);
  }
  for (const auto& [length, name] : by_length) {
    if (entries_.size() <= goal) {
      break;
    }
    if (GroupBacklog& line = lines_.at(name); may_be_parked(name, line)) {
      line.parked = true;
      ++parked_;
      cut_line(line, 0);
    }
  }
  // Where most of it can be handed out there is nothing to gain by the next look at all of it.
  room_at_ = std::max(bounds_.entries, entries_.size() + bounds_.entries / 64 + 1);
}

bool OwnedBacklog::may_be_parked(const std::string& name, const GroupBacklog& line) const {
  return strict() && line.out == 0 && !line.parked && !line.waiting.empty() &&
         (line.waiting.begin()->second->timed || is_held(name));
}

void OwnedBacklog::unpark(GroupBacklog& line) {
  if (std::exchange(line.parked, false)) {
    --parked_;
  }
}

void OwnedBacklog::cut_line(GroupBacklog& line, std::size_t left) {
  const auto from = std::next(line.waiting.begin(), static_cast<std::ptrdiff_t>(left));
  line.cut = from->first;
  std::vector<Spot> cut_off;
  for (auto place = from; place != line.waiting.end(); ++place) {
    cut_off.push_back(place->first.second);
  }
  for (const Spot& spot : cut_off) {
    dropped(spot.first);
    erase(entries_.find(spot));
  }
}

}  // namespace sluice::queue::leased
