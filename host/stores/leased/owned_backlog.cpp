#include "host/stores/leased/owned_backlog.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.hpp"
#include "base/guard.hpp"

namespace sluice::queue::leased {
namespace {

// A read that is not strongly consistent may be as old as that.
constexpr Duration kLag = std::chrono::seconds(5);
constexpr Duration kRemembered = std::chrono::seconds(15);
// Of a group that is cut, so much stays in memory at first; with less it has room for what follows.
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

// What was moved to the front has come there at any time, and so takes nobody's place.
void OrphanedRange::saw(const std::string& sort) {
  if (read_ || !any() || sort <= counted_to_ || due_of(sort) < kFrontEnd) {
    return;
  }
  if (due_of(sort) > until_) {
    read_ = true;
    return;
  }
  counted_to_ = sort;
  read_ = ++counted_ == bound_;
}

bool OrphanedRange::concerns(const Candidate& candidate) const {
  if (!any() || std::max(candidate.due, candidate.not_before.value_or(WallTime{})) > until_) {
    return false;
  }
  return counted_ < bound_ || candidate.place.sort <= counted_to_;
}

// What is read, handed out and comes back.

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
  in_flight_bound();  // counts anew
  while (taken.size() < wanted.max && bytes < wanted.bytes) {
    const bool suspects = wanted.suspects && taken.empty();
    const auto turn = turns_.priorities.next(
        rules_.weights, [&](const Spot& spot) { return suspects || !is_suspect(entries_.at(spot)); });
    if (!turn) {
      break;
    }
    Entry& entry = entries_.at(turn->spot);
    if (!may_go(entry, wanted.allowed)) {
      break;
    }
    const bool suspect = is_suspect(entry);
    entry.inherited = is_inherited(entry, shards_.at(entry.shard));
    go(entry, now + Duration(taken.size()));  // what is handed out together has its turns one after the other
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
  count_out(entry, true);
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
  count_out(entry, false);
  if (lined) {
    --lines_[name].out;
  }
  entry.known = true;
  entry.inherited = false;
  entry.seen_at = at;
  entry.candidate.version = what.version;
  entry.candidate.not_before = what.not_before;
  entry.candidate.receive_count = what.receive_count;
  entry.candidate.marks = what.marks;
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

const OwnedBacklog::ShardFigures& OwnedBacklog::of(std::uint32_t shard) const {
  static const ShardFigures kNothing;
  const auto found = shards_.find(shard);
  return found == shards_.end() ? kNothing : found->second;
}

OwnedBacklog::Figures OwnedBacklog::figures() const {
  Figures figures{.size = entries_.size(),
                  .out = out_,
                  .ready = turns_.priorities.size(),
                  .timers = timers_.size() + line_timers_.size(),
                  .parked = parked_,
                  .full = entries_.size() >= bounds_.entries};
  for (const Timers* timers : {&timers_, &line_timers_}) {
    if (!timers->empty()) {
      figures.next_timer = std::min(figures.next_timer.value_or(timers->begin()->first), timers->begin()->first);
    }
  }
  return figures;
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

// What waits: in turns, in the lines of groups, and by the times that are waited for.

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
    const auto [line, fresh] = lines_.try_emplace(name);
    if (const auto served = turns_.served.find(name); fresh && served != turns_.served.end()) {
      line->second.served_at = served->second;
    }
    line->second.waiting.emplace(position_of(entry), &entry);
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
  turns_.priorities.add(entry.candidate.priority, *entry.offered);
  count(entry, true);
}

void OwnedBacklog::withdraw(Entry& entry) {
  if (entry.offered) {
    turns_.priorities.remove(entry.candidate.priority, *entry.offered);
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
    count_out(entry, false);
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

// What may be at work: how far it lies behind the head in own shards, and what owners who died may have left.

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
      orphaned = OrphanedRange(inherited_in(shard, priority), orphaned.until());
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
  return (entry.candidate.marks & core::kSuspect) != 0 || entry.candidate.received ||
         is_inherited(entry, shards_.at(entry.shard));
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

void OwnedBacklog::count_out(const Entry& entry, bool yes) {
  Shard& shard = shards_.at(entry.shard);
  for (std::size_t* count : {&out_, &shard.out, &range_of(shard, entry.candidate.place.sort).out}) {
    *count = yes ? *count + 1 : *count - 1;
  }
}

// What is in memory is counted, and what is known to lie in the table beside that. What was moved to the front is not:
// it may come before anything at any time, and is a suspect anyway.
InFlightBound OwnedBacklog::count_range(std::uint32_t shard, std::size_t priority) {
  Shard& of = shards_.at(shard);
  Range& range = of.ranges[priority];
  const std::string from = first_sort_key(static_cast<Priority>(priority), kFrontEnd);
  range.highest = from;
  range.counted = 0;
  InFlightBound places = 0;
  std::size_t left = range.out;
  const auto begin = entries_.lower_bound({shard, first_sort_key(static_cast<Priority>(priority), WallTime{})});
  for (auto found = begin; left > 0; ++found) {
    places += found->first.second >= from ? places_of(found->second) : 0;
    if (found->second.out) {
      --left;
      range.counted = places;
      range.highest = std::max(range.highest, found->first.second);
    }
  }
  return behind_dropped(range.counted, of);
}

// The same with what may have been at work in owners before.
InFlightBound OwnedBacklog::inherited_in(std::uint32_t shard, std::size_t priority) const {
  const Shard& of = shards_.at(shard);
  const std::string from = first_sort_key(static_cast<Priority>(priority), kFrontEnd);
  InFlightBound places = 0;
  InFlightBound counted = 0;
  for (auto found = entries_.lower_bound({shard, from});
       found != entries_.end() && found->first.first == shard && found->first.second.front() == from.front(); ++found) {
    places += places_of(found->second);
    counted = found->second.out || is_inherited(found->second, of) ? places : counted;
  }
  const OrphanedRange& orphaned = of.ranges[priority].orphaned;
  const InFlightBound unread = orphaned.unread();
  const InFlightBound least = !orphaned.any() ? 0 : unread > 0 ? places + of.dropped + unread : 1;
  return std::max(behind_dropped(counted, of), least);
}

InFlightBound OwnedBacklog::left_in(std::uint32_t shard) const {
  InFlightBound bound = inherits(shard) ? 1 : 0;
  for (std::size_t priority = 0; bound > 0 && priority < kPriorities; ++priority) {
    bound = std::max(bound, inherited_in(shard, priority));
  }
  return bound;
}

InFlightBound OwnedBacklog::in_flight_bound() {
  InFlightBound bound = 0;
  for (const auto& [number, shard] : shards_) {
    for (std::size_t priority = 0; priority < kPriorities; ++priority) {
      bound = std::max(bound, count_range(number, priority));
    }
  }
  return bound;
}

InFlightBound OwnedBacklog::expected(std::size_t more) {
  return std::max(in_flight_bound(), refused_.value_or(0)) +
         static_cast<InFlightBound>(std::min<std::size_t>(more, entries_.size()));
}

// On from what has been counted for those before it.
bool OwnedBacklog::may_go(const Entry& entry, InFlightBound allowed) {
  const std::string& sort = entry.candidate.place.sort;
  Shard& of = shards_.at(entry.shard);
  Range& range = range_of(of, sort);
  for (auto found = entries_.upper_bound({entry.shard, range.highest});
       found != entries_.end() && found->first <= entry.spot(); ++found) {
    range.counted += places_of(found->second);
  }
  range.highest = std::max(range.highest, sort);
  const InFlightBound bound = behind_dropped(range.counted, of);
  if (bound > allowed) {
    refused_ = bound;
  }
  return bound <= allowed;
}

void OwnedBacklog::dropped(std::uint32_t shard) { ++shards_.at(shard).dropped; }

}  // namespace sluice::queue::leased
