#include "host/stores/leased/owned_backlog.hpp"

#include <algorithm>
#include <iterator>

#include "base/assert.hpp"

namespace sluice::queue::leased {
namespace {

// A read that is not strongly consistent may be as old as that.
constexpr Duration kLag = std::chrono::seconds(5);
constexpr Duration kRemembered = std::chrono::seconds(15);
// A group of which less is in memory has room for what follows.
constexpr std::size_t kLeftOfALine = 16;
// What an item takes in a table beside its values, about.
constexpr std::size_t kItemBytes = 60;

std::size_t bytes_of_value(const dynamo::AttributeValue& value) {
  if (const auto* text = value.get<std::string>()) {
    return text->size();
  }
  if (const auto* binary = value.get<dynamo::Binary>()) {
    return binary->bytes.size();
  }
  if (const auto* map = value.get<dynamo::Map>()) {
    std::size_t bytes = 3;
    for (const auto& [name, inner] : *map) {
      bytes += name.size() + bytes_of_value(inner);
    }
    return bytes;
  }
  return 8;
}

std::size_t bytes_of_item(const dynamo::Item& item) {
  std::size_t bytes = kItemBytes;
  for (const auto& [name, value] : item) {
    bytes += name.size() + bytes_of_value(value);
  }
  return bytes;
}

}  // namespace

void OwnedBacklog::close_shard(std::uint32_t shard) {
  const auto closed = shards_.find(shard);
  if (closed == shards_.end()) {
    return;
  }
  closed->second.open = false;
  keep_inheritance(shard);
  for (auto found = entries_.lower_bound({shard, {}}); found != entries_.end() && found->first.first == shard;) {
    const auto next = std::next(found);
    if (!found->second.out) {
      erase(found);
      dropped(shard);
    }
    found = next;
  }
}

std::vector<Spot> OwnedBacklog::lose_shard(std::uint32_t shard) {
  close_shard(shard);
  std::vector<Spot> lost;
  for (auto found = entries_.lower_bound({shard, {}}); found != entries_.end() && found->first.first == shard;) {
    const auto next = std::next(found);
    lost.push_back(found->first);
    erase(found);
    found = next;
  }
  for (auto found = lines_.begin(); found != lines_.end();) {
    GroupBacklog& line = found->second;
    if (line.cut && line.cut->second.first == shard) {
      line.cut.reset();
      unpark(line);
    }
    if (line.doubt != GroupBacklog::Doubt::none && line.doubtful_shard == shard) {
      line.doubt = GroupBacklog::Doubt::none;
    }
    const bool over = line.waiting.empty() && line.out == 0 && !line.cut && line.doubt == GroupBacklog::Doubt::none;
    found = over ? lines_.erase(found) : std::next(found);
  }
  shards_.erase(shard);
  return lost;
}

bool OwnedBacklog::is_stale(const Spot& spot, const Candidate& candidate, const Sight& sight) const {
  const auto written = written_.find(spot);
  if (written == written_.end() || candidate.version > written->second.version) {
    return false;
  }
  return sight.began < written->second.at + (sight.consistent ? Duration::zero() : kLag);
}

OwnedBacklog::Admission OwnedBacklog::admit(std::uint32_t shard, dynamo::Item item, const Sight& sight) {
  const auto mine = shards_.find(shard);
  if (mine == shards_.end() || !mine->second.open) {
    return Admission::refused;
  }
  Candidate candidate = Candidate::of(item);
  const Spot spot{shard, candidate.place.sort};
  if (!candidate.odd.empty()) {
    return Admission::refused;
  }
  range_of(mine->second, spot.second).orphaned.saw(spot.second);
  if (is_stale(spot, candidate, sight)) {
    return Admission::refused;
  }
  auto found = entries_.find(spot);
  if (found != entries_.end()) {
    Entry& entry = found->second;
    if (entry.out || candidate.version < entry.candidate.version) {
      return Admission::known;
    }
    entry.seen_at = std::max(entry.seen_at, sight.began);
    if (candidate.version == entry.candidate.version) {
      return Admission::known;
    }
    erase(found);  // somebody has changed it
  }
  Entry entry{.shard = shard, .candidate = std::move(candidate), .item = std::move(item)};
  entry.seen_at = sight.began;
  entry.pass = sight.pass;
  if (in_line(entry)) {
    const auto line = lines_.find(line_of(entry));
    if (line != lines_.end() && line->second.cut && position_of(entry) >= *line->second.cut) {
      dropped(shard);
      return Admission::refused;
    }
  }
  entry.bytes = bytes_of_item(entry.item);
  found = entries_.emplace(spot, std::move(entry)).first;
  Shard& of = mine->second;
  ++of.entries;
  of.bytes += found->second.bytes;
  count_in(of, found->second, true);
  place(found->second, sight.now);
  keep_bounds();
  return Admission::fresh;
}

void OwnedBacklog::sweep_begins(std::uint32_t shard) {
  if (const auto mine = shards_.find(shard); mine != shards_.end()) {
    mine->second.dropped_before = mine->second.dropped;
    mine->second.doubtful = false;
  }
  std::vector<std::string> reread;
  for (auto& [name, line] : lines_) {
    const bool stays = line.parked && is_held(name);
    if (line.cut && !stays && line.waiting.size() < kLeftOfALine && line.cut->second.first == shard) {
      line.cut.reset();
      unpark(line);
      if (strict()) {  // what comes of it now comes in the order of the keys, or of another read
        line.doubt = GroupBacklog::Doubt::waits;
        line.doubtful_shard = shard;
        reread.push_back(name);
      }
    }
    if (line.doubt == GroupBacklog::Doubt::waits && line.doubtful_shard == shard) {
      line.doubt = GroupBacklog::Doubt::swept;
    }
  }
  for (const std::string& name : reread) {
    look_after(name);
  }
}

bool OwnedBacklog::swept(std::uint32_t shard, SteadyTime began) {
  bool vanished = false;
  for (auto found = entries_.lower_bound({shard, {}}); found != entries_.end() && found->first.first == shard;) {
    const auto next = std::next(found);
    if (!found->second.out && found->second.seen_at < began) {
      vanished = vanished || in_line(found->second);
      erase(found);
    }
    found = next;
  }
  if (const auto mine = shards_.find(shard); mine != shards_.end()) {
    mine->second.dropped -= std::exchange(mine->second.dropped_before, 0);
  }
  std::vector<std::string> sure;
  for (auto& [name, line] : lines_) {
    if (line.doubt == GroupBacklog::Doubt::swept && line.doubtful_shard == shard) {
      line.doubt = GroupBacklog::Doubt::none;
      sure.push_back(name);
    }
  }
  for (const std::string& name : sure) {
    look_after(name);
  }
  room_at_ = bounds_.entries;
  keep_bounds();
  return vanished;
}

bool OwnedBacklog::passed(std::uint32_t shard, const Frontier& frontier) {
  const auto mine = shards_.find(shard);
  if (mine == shards_.end() || !strict()) {
    return false;
  }
  mine->second.frontier = frontier;
  auto& unsure = mine->second.unsure;
  std::set<std::string> moved;
  const std::string& end = std::max(frontier.settled, frontier.passed);
  for (auto one = unsure.begin(); one != unsure.end() && one->first <= end;) {
    Entry& entry = entries_.at({shard, one->second});
    if (one->first > frontier.settled && entry.pass >= frontier.pass) {
      ++one;
      continue;
    }
    entry.sure = true;
    moved.insert(line_of(entry));
    one = unsure.erase(one);
  }
  for (const std::string& line : moved) {
    look_after(line);
  }
  return !unsure.empty();
}

void OwnedBacklog::doubt_holds(std::uint32_t shard) {
  if (const auto mine = shards_.find(shard); mine != shards_.end() && mine->second.holds_known) {
    mine->second.holds_known = false;
    look_after_all();
  }
}

void OwnedBacklog::look_after_all() {
  std::vector<std::string> names;
  names.reserve(lines_.size());
  for (const auto& [name, line] : lines_) {
    names.push_back(name);
  }
  for (const std::string& name : names) {
    look_after(name);
  }
}

bool OwnedBacklog::hold(std::uint32_t shard, std::set<std::string> groups, WallTime now) {
  const auto mine = shards_.find(shard);
  if (mine == shards_.end()) {
    return false;
  }
  bool freed = false;
  for (const std::string& group : mine->second.held) {
    if (strict() && !groups.contains(group)) {
      GroupBacklog& line = lines_[group];
      line.doubt = GroupBacklog::Doubt::waits;
      line.doubtful_shard = shard;
      freed = true;
    }
  }
  const bool were_known = std::exchange(mine->second.holds_known, true);
  std::set<std::string> touched;
  std::set_symmetric_difference(groups.begin(), groups.end(), mine->second.held.begin(), mine->second.held.end(),
                                std::inserter(touched, touched.end()));
  mine->second.held = std::move(groups);
  for (const std::string& group : touched) {
    if (const auto line = lines_.find(group); line != lines_.end()) {
      line->second.served_at = std::max(line->second.served_at, now);
      if (!is_held(group)) {
        unpark(line->second);
      }
      look_after(group);
    }
  }
  if (!were_known) {
    look_after_all();
  }
  return freed;
}

bool OwnedBacklog::is_held(const std::string& group) const {
  return std::any_of(shards_.begin(), shards_.end(),
                     [&group](const auto& shard) { return shard.second.held.contains(group); });
}

void OwnedBacklog::rules(const ClaimRules& rules, WallTime now) {
  const bool regroup = rules.order != rules_.order || rules.fair != rules_.fair;
  if (!regroup) {
    rules_ = rules;
    return;
  }
  const bool was_strict = strict();
  for (auto& [spot, entry] : entries_) {
    if (!entry.out) {
      unplace(entry);
    }
  }
  for (const auto& [name, line] : lines_) {
    if (line.cut) {
      unswept_.insert(line.cut->second.first);
    }
  }
  lines_.clear();
  parked_ = 0;
  rules_ = rules;
  for (auto& [number, shard] : shards_) {
    shard.unsure.clear();
    shard.frontier = was_strict ? shard.frontier : Frontier();
  }
  for (auto& [spot, entry] : entries_) {
    if (entry.out && in_line(entry)) {
      ++lines_[line_of(entry)].out;
    }
  }
  for (auto& [spot, entry] : entries_) {
    entry.sure = entry.sure && was_strict;
    entry.pass = was_strict ? entry.pass : 0;
    if (!entry.out) {
      place(entry, now);
    }
  }
}

void OwnedBacklog::wake(WallTime now) {
  for (Timers* timers : {&timers_, &line_timers_}) {
    while (!timers->empty() && timers->begin()->first < now) {
      Entry& entry = entries_.at(timers->begin()->second);
      unplace(entry);
      place(entry, now);
    }
  }
}

std::vector<OwnedBacklog::Taken> OwnedBacklog::take(const Wanted& wanted, WallTime now) {
  std::vector<Taken> taken;
  std::size_t bytes = 0;
  refused_.reset();
  while (taken.size() < wanted.max && bytes < wanted.bytes) {
    const bool suspects = wanted.suspects && taken.empty();
    const auto turn =
        turns_.next(rules_.weights, [&](const Spot& spot) { return suspects || !is_suspect(entries_.at(spot)); });
    if (!turn) {
      break;
    }
    Entry& entry = entries_.at(turn->spot);
    if (!may_go(entry, wanted.allowed)) {
      break;
    }
    const bool suspect = is_suspect(entry);
    entry.inherited = is_inherited(entry, shards_.at(entry.shard));
    go(entry, now);
    bytes += entry.bytes;
    taken.push_back({&entry, suspect});
    if (suspect) {
      break;
    }
  }
  return taken;
}

void OwnedBacklog::go(Entry& entry, WallTime now) {
  unplace(entry);
  entry.out = true;
  ++out_;
  ++shards_.at(entry.shard).out;
  if (in_line(entry)) {
    GroupBacklog& line = lines_[line_of(entry)];
    ++line.out;
    line.served_at = std::max(line.served_at, now);
    look_after(line_of(entry));
  }
}

void OwnedBacklog::returned(const Spot& spot, const Return& what, WallTime now, SteadyTime at) {
  if (what.kind != Return::Kind::back) {
    remember(spot, what.version, at);
  }
  const auto found = entries_.find(spot);
  if (found == entries_.end() || !found->second.out) {
    if (found != entries_.end() && what.kind != Return::Kind::back) {
      erase(found);
    }
    return;
  }
  Entry& entry = found->second;
  const bool lined = in_line(entry);
  const std::string name = lined ? line_of(entry) : std::string();
  if (what.kind == Return::Kind::unknown) {
    unswept_.insert(entry.shard);
    Shard& of = shards_.at(entry.shard);
    of.doubtful = of.doubtful || entry.inherited;  // it may be the same once more
    dropped(entry.shard);
    if (lined && strict()) {
      lines_[name].doubt = GroupBacklog::Doubt::waits;
      lines_[name].doubtful_shard = entry.shard;
    }
  }
  if (what.kind != Return::Kind::back || !shards_.at(entry.shard).open) {
    if (what.kind == Return::Kind::back) {
      dropped(entry.shard);
    }
    erase(found);
    if (lined) {
      lines_[name].served_at = std::max(lines_[name].served_at, now);
      look_after(name);
    }
    return;
  }
  entry.out = false;
  --out_;
  --shards_.at(entry.shard).out;
  if (lined) {
    --lines_[name].out;
  }
  entry.known = true;
  entry.inherited = false;
  entry.seen_at = at;
  entry.candidate.version = what.version;
  entry.candidate.not_before = what.not_before;
  entry.candidate.receive_count = what.receive_count;
  entry.candidate.suspect = what.suspect;
  entry.candidate.received = false;
  if (what.failure) {
    entry.item.insert_or_assign(std::string(attribute::kFailure), *what.failure);
  }
  place(entry, now);
  keep_bounds();
}

void OwnedBacklog::remember(const Spot& spot, std::int64_t version, SteadyTime at) {
  written_[spot] = {version, at};
  written_order_.emplace_back(at, spot);
  while (!written_order_.empty() && written_order_.front().first + kRemembered < at) {
    const auto old = written_.find(written_order_.front().second);
    if (old != written_.end() && old->second.at + kRemembered < at) {
      written_.erase(old);
    }
    written_order_.pop_front();
  }
}

std::set<std::uint32_t> OwnedBacklog::take_unswept() { return std::exchange(unswept_, {}); }

std::size_t OwnedBacklog::out_of(std::uint32_t shard) const {
  const auto found = shards_.find(shard);
  return found == shards_.end() ? 0 : found->second.out;
}

std::size_t OwnedBacklog::bytes_of(std::uint32_t shard) const {
  const auto found = shards_.find(shard);
  return found == shards_.end() ? 0 : found->second.bytes;
}

bool OwnedBacklog::dropped_any(std::uint32_t shard) const {
  const auto found = shards_.find(shard);
  return found != shards_.end() && found->second.dropped > 0;
}

bool OwnedBacklog::holds_any(std::uint32_t shard) const {
  const auto found = shards_.find(shard);
  return found != shards_.end() && found->second.entries > 0;
}

std::array<std::size_t, kPriorities> OwnedBacklog::waiting_in(std::uint32_t shard) const {
  const auto found = shards_.find(shard);
  return found == shards_.end() ? std::array<std::size_t, kPriorities>{} : found->second.ready;
}

std::optional<WallTime> OwnedBacklog::next_timer() const {
  std::optional<WallTime> next;
  for (const Timers* timers : {&timers_, &line_timers_}) {
    if (!timers->empty()) {
      next = std::min(next.value_or(timers->begin()->first), timers->begin()->first);
    }
  }
  return next;
}

std::optional<WallTime> OwnedBacklog::oldest_due() const {
  std::optional<WallTime> oldest;
  for (const auto& [spot, entry] : entries_) {
    if (!entry.out && !entry.timed && (!oldest || entry.candidate.due < *oldest)) {
      oldest = entry.candidate.due;
    }
  }
  return oldest;
}

}  // namespace sluice::queue::leased
