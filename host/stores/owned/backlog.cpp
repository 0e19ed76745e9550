#include "host/stores/owned/backlog.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/guard.hpp"

namespace sluice::queue::owned {
namespace {

// A read that is not strongly consistent may be as old as that.
constexpr Duration kLag = std::chrono::seconds(5);
constexpr Duration kRemembered = std::chrono::seconds(15);
// Of a group that is cut, so much stays in memory at first; with less it has room for what follows.
constexpr std::size_t kLeftOfALine = 16;

// The highest key of what was moved to the front.
std::string front_of(std::size_t priority) {
  return last_sort_key(static_cast<Priority>(priority), kFrontEnd - std::chrono::milliseconds(1));
}

std::size_t priority_at(const std::string& sort) { return static_cast<std::size_t>(priority_of(sort)); }

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

// What is read, handed out and comes back.

void Backlog::take_part(std::uint32_t part, InFlightBound bound, WallTime until) {
  const auto [taken, fresh] = parts_.try_emplace(part);
  taken->second.open = true;
  for (Range& range : taken->second.ranges) {
    if (fresh && SLUICE_GUARD(leased_suspects)) {
      range.orphaned = OrphanedRange(bound, until);
    }
  }
}

// What was read of it is about to be dropped. Should it stay after all, it is counted anew.
void Backlog::close_part(std::uint32_t part) {
  const auto closed = parts_.find(part);
  if (closed == parts_.end()) {
    return;
  }
  closed->second.open = false;
  for (std::size_t priority = 0; priority < kPriorities; ++priority) {
    OrphanedRange& orphaned = closed->second.ranges[priority].orphaned;
    if (orphaned.any()) {
      orphaned = OrphanedRange(inherited_in(part, priority), orphaned.until());
    }
  }
  for (auto next = entries_.lower_bound({part, {}}); next != entries_.end() && next->first.first == part;) {
    if (const auto found = next++; !found->second.out) {
      drop(found);
    }
  }
}

std::vector<Spot> Backlog::lose_part(std::uint32_t part) {
  close_part(part);
  std::vector<Spot> lost;
  for (auto next = entries_.lower_bound({part, {}}); next != entries_.end() && next->first.first == part;) {
    lost.push_back(next->first);
    erase(next++);
  }
  for (auto& [name, line] : lines_) {
    if (line.cut && line.cut->second.first == part) {
      uncut(line);
    }
    if (line.doubtful_part == part) {
      line.doubt = GroupBacklog::Doubt::none;
    }
  }
  std::erase_if(lines_, [](const auto& line) { return line.second.over(); });
  parts_.erase(part);
  return lost;
}

bool Backlog::is_stale(const Spot& spot, const Found& found, const Sight& sight) const {
  const auto written = written_.find(spot);
  if (written == written_.end() || found.state.version > written->second.version) {
    return false;
  }
  return sight.began < written->second.at + (sight.consistent ? Duration::zero() : kLag);
}

bool Backlog::admit(std::uint32_t part, Found found, const Sight& sight) {
  const auto mine = parts_.find(part);
  if (mine == parts_.end() || !mine->second.open) {
    return false;
  }
  Part& of = mine->second;
  const Spot spot{part, found.sort};
  of.ranges[priority_at(found.sort)].orphaned.saw(found.sort);
  if (is_stale(spot, found, sight)) {
    return false;
  }
  if (const auto before = entries_.find(spot); before != entries_.end()) {
    Entry& entry = before->second;
    if (entry.out || found.state.version < entry.state.version) {
      return false;
    }
    entry.seen_at = std::max(entry.seen_at, sight.began);
    if (found.state.version == entry.state.version) {
      return false;
    }
    erase(before);  // somebody has changed it
  }
  Entry fresh{std::move(found)};
  fresh.part = part;
  fresh.seen_at = sight.began;
  fresh.pass = sight.pass;
  if (const GroupBacklog* line = line_with(fresh); line != nullptr && line->cut && position_of(fresh) >= *line->cut) {
    ++of.dropped;
    return false;
  }
  Entry& entry = entries_.emplace(spot, std::move(fresh)).first->second;
  count_in(entry, true);
  place(entry, sight.now);
  keep_bounds();
  return true;
}

void Backlog::sweep_begins(std::uint32_t part) {
  if (const auto mine = parts_.find(part); mine != parts_.end()) {
    mine->second.dropped_before = mine->second.dropped;
    mine->second.doubtful = false;
  }
  for (auto next = lines_.begin(); next != lines_.end();) {
    auto& [name, line] = *next++;
    const bool stays = line.parked && is_held(name);
    const bool reread = line.cut && !stays && line.waiting.size() < kLeftOfALine && line.cut->second.first == part;
    if (reread) {
      uncut(line);
      if (strict()) {  // what comes of it now comes in the order of the keys, or of another read
        line.doubt_in(part);
      }
    }
    if (line.doubt == GroupBacklog::Doubt::waits && line.doubtful_part == part) {
      line.doubt = GroupBacklog::Doubt::swept;
    }
    if (reread) {
      look_after(name);
    }
  }
}

Backlog::News Backlog::read(std::uint32_t part, const Progress& progress) {
  const auto mine = parts_.find(part);
  if (mine == parts_.end()) {
    return {};
  }
  News news{.unsure = strict() && come_past(part, progress.frontier)};
  for (Range& range : mine->second.ranges) {
    if (progress.to_the_end) {
      range.orphaned.read_to_end();
    }
  }
  if (progress.swept) {
    news.vanished = sweep_ended(part, *progress.swept);
    if (progress.to_the_end) {
      forget_inherited(part);
    }
  }
  return news;
}

// What it has not seen is gone. True: one that was waiting in a line.
bool Backlog::sweep_ended(std::uint32_t part, SteadyTime began) {
  bool vanished = false;
  for (auto next = entries_.lower_bound({part, {}}); next != entries_.end() && next->first.first == part;) {
    const auto found = next++;
    if (!found->second.out && found->second.seen_at < began) {
      vanished = vanished || in_line(found->second);
      erase(found);
    }
  }
  Part& of = parts_.at(part);
  of.dropped -= std::exchange(of.dropped_before, 0);
  for (auto next = lines_.begin(); next != lines_.end();) {
    auto& [name, line] = *next++;
    if (line.doubt == GroupBacklog::Doubt::swept && line.doubtful_part == part) {
      line.doubt = GroupBacklog::Doubt::none;
      look_after(name);
    }
  }
  room_at_ = bounds_.entries;
  keep_bounds();
  return vanished;
}

// True: something still waits for the frontier.
bool Backlog::come_past(std::uint32_t part, const Frontier& frontier) {
  Part& of = parts_.at(part);
  of.frontier = frontier;
  std::set<std::string> moved;
  const std::string& end = std::max(frontier.settled, frontier.passed);
  for (auto one = of.unsure.begin(); one != of.unsure.end() && one->first <= end;) {
    Entry& entry = entries_.at({part, one->second});
    if (one->first > frontier.settled && entry.pass >= frontier.pass) {
      ++one;
      continue;
    }
    entry.sure = true;
    moved.insert(line_of(entry));
    one = of.unsure.erase(one);
  }
  for (const std::string& line : moved) {
    look_after(line);
  }
  return !of.unsure.empty();
}

void Backlog::doubt_holds(std::uint32_t part) {
  if (const auto mine = parts_.find(part); mine != parts_.end() && std::exchange(mine->second.holds_known, false)) {
    look_after_all();
  }
}

bool Backlog::hold(std::uint32_t part, std::set<std::string> groups, WallTime now) {
  const auto mine = parts_.find(part);
  if (mine == parts_.end()) {
    return false;
  }
  bool freed = false;
  std::set<std::string> touched;
  std::set_symmetric_difference(groups.begin(), groups.end(), mine->second.held.begin(), mine->second.held.end(),
                                std::inserter(touched, touched.end()));
  for (const std::string& group : touched) {
    if (strict() && !groups.contains(group)) {
      lines_[group].doubt_in(part);
      freed = true;
    }
  }
  const bool were_known = std::exchange(mine->second.holds_known, true);
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

bool Backlog::is_held(const std::string& group) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&group](const auto& part) { return part.second.held.contains(group); });
}

void Backlog::rules(const ClaimRules& rules, WallTime now) {
  if (rules.order == rules_.order && rules.fair == rules_.fair) {
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
  for (auto& [number, part] : parts_) {
    part.unsure.clear();
    part.frontier = was_strict ? part.frontier : Frontier();
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

void Backlog::wake(WallTime now) {
  for (Timers* timers : {&timers_, &line_timers_}) {
    while (!timers->empty() && timers->begin()->first < now) {
      Entry& entry = entries_.at(timers->begin()->second);
      unplace(entry);
      place(entry, now);
    }
  }
}

Backlog::Claim Backlog::take(const Wanted& wanted, WallTime now) {
  Claim claim;
  std::size_t bytes = 0;
  while (claim.entries.size() < wanted.max && bytes < wanted.bytes) {
    const bool suspects = wanted.suspects && claim.entries.empty();
    const auto turn = turns_.priorities.next(
        rules_.weights, [&](const Spot& spot) { return suspects || !is_suspect(entries_.at(spot)); });
    if (!turn) {
      break;
    }
    Entry& entry = entries_.at(turn->spot);
    const Range& range = range_of(entry);
    const InFlightBound reach =
        reach_of(parts_.at(entry.part), range.reach + beyond_reach(entry), range.out.size() + 1);
    if (reach > wanted.allowed) {
      claim.refused = reach;
      break;
    }
    entry.suspect = is_suspect(entry);
    entry.inherited = is_inherited(entry);
    // What is handed out together has its turns one after the other.
    go(entry, now + Duration(claim.entries.size()));
    bytes += entry.bytes;
    claim.entries.push_back(&entry);
    if (entry.suspect) {
      break;
    }
  }
  refused_ = claim.refused.value_or(0);
  return claim;
}

void Backlog::go(Entry& entry, WallTime now) {
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

void Backlog::returned(const Spot& spot, const Return& what, WallTime now, SteadyTime at) {
  const bool back = what.kind == Return::Kind::back;
  if (!back) {
    remember(spot, what.state.version, at);
  }
  const auto found = entries_.find(spot);
  if (found == entries_.end() || !found->second.out) {
    if (found != entries_.end() && !back) {
      erase(found);
    }
    return;
  }
  Entry& entry = found->second;
  Part& of = parts_.at(entry.part);
  GroupBacklog* const line = line_with(entry);
  if (what.kind == Return::Kind::unknown) {
    unswept_.insert(entry.part);
    of.doubtful = of.doubtful || entry.inherited;  // it may be the same once more
    if (line != nullptr && strict()) {
      line->doubt_in(entry.part);
    }
  }
  if (!back || !of.open) {
    const std::string name = line_of(entry);
    what.kind == Return::Kind::gone ? erase(found) : drop(found);
    if (const auto left = lines_.find(name); line != nullptr && left != lines_.end()) {
      left->second.served_at = std::max(left->second.served_at, now);
    }
    return;
  }
  entry.out = false;
  count_out(entry, false);
  if (line != nullptr) {
    --line->out;
  }
  entry.known = true;
  entry.inherited = false;
  entry.seen_at = at;
  // Its record has become as much longer.
  of.bytes -= std::exchange(entry.bytes, entry.bytes - entry.state.checkpoint.size() + what.state.checkpoint.size());
  of.bytes += entry.bytes;
  entry.state = what.state;
  place(entry, now);
  keep_bounds();
}

void Backlog::remember(const Spot& spot, std::int64_t version, SteadyTime at) {
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

const Backlog::PartFigures& Backlog::of(std::uint32_t part) const {
  static const PartFigures kNothing;
  const auto found = parts_.find(part);
  return found == parts_.end() ? kNothing : found->second;
}

Backlog::Figures Backlog::figures() const {
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

std::optional<WallTime> Backlog::oldest_due() const {
  std::optional<WallTime> oldest;
  for (const auto& [spot, entry] : entries_) {
    if (!entry.out && !entry.timed) {
      oldest = std::min(oldest.value_or(entry.due()), entry.due());
    }
  }
  return oldest;
}

// What waits: in turns, in the lines of groups, and by the times that are waited for.

bool Backlog::in_line(const Entry& entry) const {
  return rules_.order == Order::queue || ((rules_.order == Order::group || rules_.fair) && !entry.state.group.empty());
}

// Of a queue that goes in sequence all are in one line, which has no name that a group has.
const std::string& Backlog::line_of(const Entry& entry) const {
  static const std::string kOnlyLine;
  return rules_.order == Order::queue ? kOnlyLine : entry.state.group;
}

Backlog::GroupBacklog* Backlog::line_with(const Entry& entry) {
  const auto line = in_line(entry) ? lines_.find(line_of(entry)) : lines_.end();
  return line == lines_.end() ? nullptr : &line->second;
}

void Backlog::place(Entry& entry, WallTime now) {
  const auto& until = entry.state.hidden_until;
  entry.timed = until && now <= *until;
  if (entry.timed) {
    timers_of(entry).emplace(*until, entry.spot());
  }
  if (!in_line(entry)) {
    if (!entry.timed) {
      offer(entry, entry.due());
    }
    return;
  }
  if (strict() && !entry.sure) {
    Part& part = parts_.at(entry.part);
    const std::string place = Frontier::place_of(entry.sort);
    entry.sure = place <= part.frontier.settled;
    if (!entry.sure) {
      part.unsure.emplace(place, entry.sort);
    }
  }
  if (strict() || !entry.timed) {
    const std::string& name = line_of(entry);
    const auto [line, fresh] = lines_.try_emplace(name);
    if (const auto served = turns_.served.find(name); fresh && served != turns_.served.end()) {
      line->second.served_at = served->second;
    }
    line->second.waiting.emplace(position_of(entry), &entry);
    count(entry, !strict());
    look_after(name);
  }
}

void Backlog::unplace(Entry& entry) {
  if (entry.timed) {
    timers_of(entry).erase({*entry.state.hidden_until, entry.spot()});
    entry.timed = false;
  }
  withdraw(entry);
  count(entry, false);
  if (GroupBacklog* line = line_with(entry)) {
    line->waiting.erase(position_of(entry));
    line->offered = line->offered == &entry ? nullptr : line->offered;
  }
}

void Backlog::count(Entry& entry, bool yes) {
  if (std::exchange(entry.counted, yes) != yes) {
    std::size_t& ready = parts_.at(entry.part).ready[static_cast<std::size_t>(entry.state.priority)];
    ready = yes ? ready + 1 : ready - 1;
  }
}

void Backlog::offer(Entry& entry, WallTime at) {
  entry.offered = Turn{at, entry.spot()};
  turns_.priorities.add(entry.state.priority, *entry.offered);
  count(entry, true);
}

void Backlog::withdraw(Entry& entry) {
  if (entry.offered) {
    turns_.priorities.remove(entry.state.priority, *entry.offered);
    entry.offered.reset();
  }
}

// Where the order is kept: nothing of the line may go now.
bool Backlog::waits(const std::string& name, const GroupBacklog& line, const Entry& head) const {
  return line.out > 0 || line.doubt != GroupBacklog::Doubt::none || head.timed || !head.sure ||
         !parts_.at(head.part).holds_known || is_held(name);
}

// Brings what a line offers into line with what it holds.
void Backlog::look_after(const std::string& name) {
  const auto found = lines_.find(name);
  if (found == lines_.end()) {
    return;
  }
  GroupBacklog& line = found->second;
  Entry* head = line.waiting.empty() ? nullptr : line.waiting.begin()->second;
  if (head != nullptr && strict() && waits(name, line, *head)) {
    head = nullptr;
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
    offer(*head, std::max(head->due(), line.served_at));
  }
  if (line.waiting.empty() && line.out == 0 && line.cut && !line.parked) {
    unswept_.insert(line.cut->second.first);
  }
  if (line.over()) {
    lines_.erase(found);
  }
}

void Backlog::look_after_all() {
  for (auto next = lines_.begin(); next != lines_.end();) {
    look_after((next++)->first);
  }
}

void Backlog::erase(Entries::iterator found) {
  Entry& entry = found->second;
  Part& part = parts_.at(entry.part);
  GroupBacklog* const line = line_with(entry);
  if (entry.out) {
    count_out(entry, false);
    if (line != nullptr) {
      --line->out;
    }
  } else {
    unplace(entry);
  }
  count_in(entry, false);
  if (!entry.sure && !part.unsure.empty()) {
    part.unsure.erase({Frontier::place_of(entry.sort), entry.sort});
  }
  const std::string name = line == nullptr ? std::string() : line_of(entry);
  entries_.erase(found);
  if (line != nullptr) {
    look_after(name);
  }
}

void Backlog::drop(Entries::iterator found) {
  ++parts_.at(found->first.first).dropped;
  erase(found);
}

void Backlog::keep_bounds() {
  // Of timers the last ones go: they have the longest to wait, and a sweep finds them again.
  while (timers_.size() > bounds_.timers) {
    drop(entries_.find(std::prev(timers_.end())->second));
  }
  if (entries_.size() >= room_at_) {
    make_room();
  }
}

// The longest groups are cut first. If that is not enough, those that cannot go on leave memory altogether.
void Backlog::make_room() {
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
    GroupBacklog& line = lines_.at(name);
    const bool waits = !line.waiting.empty() && (line.waiting.begin()->second->timed || is_held(name));
    if (strict() && line.out == 0 && !line.parked && waits) {
      line.parked = true;
      ++parked_;
      cut_line(line, 0);
    }
  }
  // Where most of it can be handed out there is nothing to gain by the next look at all of it.
  room_at_ = std::max(bounds_.entries, entries_.size() + bounds_.entries / 64 + 1);
}

void Backlog::unpark(GroupBacklog& line) { parked_ -= std::exchange(line.parked, false) ? 1 : 0; }

void Backlog::uncut(GroupBacklog& line) {
  line.cut.reset();
  unpark(line);
}

void Backlog::cut_line(GroupBacklog& line, std::size_t left) {
  const auto from = std::next(line.waiting.begin(), static_cast<std::ptrdiff_t>(left));
  line.cut = from->first;
  std::vector<Spot> cut_off;
  std::transform(from, line.waiting.end(), std::back_inserter(cut_off),
                 [](const auto& waiting) { return waiting.first.second; });
  for (const Spot& spot : cut_off) {
    drop(entries_.find(spot));
  }
}

// What may be at work: how far it lies behind the head in own parts, and what owners who died may have left.

bool Backlog::is_inherited(const Entry& entry) const {
  const Range& range = parts_.at(entry.part).ranges[priority_at(entry.sort)];
  return !entry.known && range.orphaned.concerns(entry.sort, entry.due_at());
}

bool Backlog::is_suspect(const Entry& entry) const { return entry.state.is_suspect() || is_inherited(entry); }

// One that is out as a suspect may come to be read anew.
void Backlog::forget_inherited(std::uint32_t part) {
  const bool cut = std::any_of(lines_.begin(), lines_.end(), [](const auto& line) { return line.second.cut; });
  Part& mine = parts_.at(part);
  if (cut || mine.doubtful || !inherits(part)) {
    return;
  }
  std::array<bool, kPriorities> left{};
  for (auto found = entries_.lower_bound({part, {}}); found != entries_.end() && found->first.first == part; ++found) {
    bool& any = left[priority_at(found->first.second)];
    any = any || found->second.inherited || is_inherited(found->second);
  }
  for (std::size_t priority = 0; priority < kPriorities; ++priority) {
    if (!left[priority]) {
      mine.ranges[priority].orphaned = OrphanedRange();
    }
  }
}

bool Backlog::inherits(std::uint32_t part) const {
  const auto found = parts_.find(part);
  return found != parts_.end() && std::any_of(found->second.ranges.begin(), found->second.ranges.end(),
                                              [](const Range& range) { return range.orphaned.any(); });
}

Backlog::Range& Backlog::range_of(const Entry& entry) { return parts_.at(entry.part).ranges[priority_at(entry.sort)]; }

// It lies behind all that is out of its range: by so many.
InFlightBound Backlog::beyond_reach(const Entry& entry) {
  const Range& range = range_of(entry);
  if (entry.in_front() || (!range.out.empty() && entry.sort <= *range.out.rbegin())) {
    return 0;
  }
  const std::string last = range.out.empty() ? front_of(priority_at(entry.sort)) : std::string(*range.out.rbegin());
  return static_cast<InFlightBound>(
      std::distance(entries_.upper_bound({entry.part, last}), entries_.upper_bound(entry.spot())));
}

void Backlog::count_out(const Entry& entry, bool yes) {
  for (std::size_t* count : {&out_, &parts_.at(entry.part).out}) {
    *count = yes ? *count + 1 : *count - 1;
  }
  if (entry.in_front()) {
    return;
  }
  Range& range = range_of(entry);
  if (yes) {
    range.reach += beyond_reach(entry);
    range.out.insert(entry.sort);
  } else {
    range.out.erase(entry.sort);
    range.reach -= beyond_reach(entry);
  }
}

// It comes into memory, or leaves it.
void Backlog::count_in(const Entry& entry, bool yes) {
  Range& range = range_of(entry);
  if (!range.out.empty() && !entry.in_front() && entry.sort < *range.out.rbegin()) {
    range.reach = yes ? range.reach + 1 : range.reach - 1;
  }
  Part& part = parts_.at(entry.part);
  part.entries = yes ? part.entries + 1 : part.entries - 1;
  part.bytes = yes ? part.bytes + entry.bytes : part.bytes - entry.bytes;
}

// What is in memory is counted, and what is known to lie there beside that: what was dropped may lie before anything.
// What was moved to the front is not: it may come before anything at any time, and is a suspect anyway.
InFlightBound Backlog::reach_of(const Part& part, InFlightBound reach, std::size_t out) {
  const auto places = SLUICE_GUARD(leased_reach) ? reach : static_cast<InFlightBound>(out);
  return places > 0 ? places + part.dropped : 0;
}

// The same with what may have been at work in owners before.
InFlightBound Backlog::inherited_in(std::uint32_t part, std::size_t priority) const {
  const Part& of = parts_.at(part);
  const std::string front = front_of(priority);
  InFlightBound places = 0;
  InFlightBound counted = 0;
  for (auto found = entries_.upper_bound({part, front});
       found != entries_.end() && found->first.first == part && found->first.second.front() == front.front(); ++found) {
    const Entry& entry = found->second;
    places += SLUICE_GUARD(leased_reach) || entry.out ? 1 : 0;
    counted = entry.out || is_inherited(entry) ? places + of.dropped : counted;
  }
  const OrphanedRange& orphaned = of.ranges[priority].orphaned;
  const InFlightBound unread = orphaned.unread();
  const InFlightBound least = !orphaned.any() ? 0 : unread > 0 ? places + of.dropped + unread : 1;
  return std::max(counted, least);
}

InFlightBound Backlog::left_in(std::uint32_t part) const {
  InFlightBound bound = inherits(part) ? 1 : 0;
  for (std::size_t priority = 0; bound > 0 && priority < kPriorities; ++priority) {
    bound = std::max(bound, inherited_in(part, priority));
  }
  return bound;
}

InFlightBound Backlog::in_flight_bound() const {
  InFlightBound bound = 0;
  for (const auto& [number, part] : parts_) {
    for (const Range& range : part.ranges) {
      bound = std::max(bound, reach_of(part, range.reach, range.out.size()));
    }
  }
  return bound;
}

InFlightBound Backlog::expected(std::size_t more) const {
  return std::max(in_flight_bound(), refused_) +
         static_cast<InFlightBound>(std::min<std::size_t>(more, entries_.size()));
}

}  // namespace sluice::queue::owned
