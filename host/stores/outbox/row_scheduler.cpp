#include "host/stores/outbox/row_scheduler.hpp"

#include <algorithm>
#include <iterator>

#include "base/assert.hpp"

namespace sluice::queue::outbox {
namespace {

// What is read and not handed out yet, in pages.
constexpr std::size_t kPagesAhead = 2;
constexpr std::size_t kLeastCapacity = 256;
// A transaction that commits so long after a later id is found at the next news, and otherwise at the next sweep.
constexpr Duration kOverlap = std::chrono::seconds(2);
constexpr Duration kTailPace = std::chrono::milliseconds(5);
constexpr Duration kSweepPace = std::chrono::milliseconds(500);
// Where nobody tells of new rows.
constexpr Duration kQuickestLook = std::chrono::milliseconds(10);
constexpr Duration kSlowestLook = std::chrono::seconds(1);
constexpr std::size_t kGroupsAtOnce = 64;
// Of names of groups in one statement: servers take 16 MiB and more, where each byte stands as two digits.
constexpr std::size_t kMostPassedOver = 1U << 20U;

std::uint64_t hash_of(const Group& group) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
  const std::hash<std::string> hash;
  return (hash(group.type) * kOdd) ^ hash(group.id);
}

}  // namespace

Fate fate_of(const Completion& completion) {
  switch (completion.action) {
    case CompletionAction::remove:
      return {Fate::Kind::sent};
    case CompletionAction::dead_letter:
      return {.kind = Fate::Kind::dead, .stored = true};
    case CompletionAction::retry:
    case CompletionAction::release:
    case CompletionAction::keep:  // nobody asks for it (SourceTraits::checkpoints)
      break;
  }
  return {Fate::Kind::put_back, completion.delay, completion.action == CompletionAction::retry};
}

RowScheduler::RowScheduler(Settings settings)
    : settings_(std::move(settings)),
      side_by_side_(settings_.filter.side_by_side && !settings_.resend_sent),
      capacity_(std::max(kPagesAhead * settings_.fetch_limit, kLeastCapacity)),
      sweep_pace_(quickest_sweeps()) {}

void RowScheduler::take_buckets(std::span<const std::uint32_t> buckets) {
  for (const std::uint32_t bucket : buckets) {
    buckets_.emplace(bucket, number_ + 1);
  }
  if (!buckets.empty()) {
    // Its rows must be read in order, from the first one.
    sweep_at_ = SteadyTime{};
    scanning_ = false;
    scan_begun_ = number_ + 1;
  }
}

void RowScheduler::leave_buckets(std::span<const std::uint32_t> buckets) {
  std::set<std::uint32_t> left(buckets.begin(), buckets.end());
  for (const std::uint32_t bucket : left) {
    buckets_.erase(bucket);
  }
  for (auto line = lines_.begin(); line != lines_.end();) {
    const auto next = std::next(line);
    if (left.contains(line->second.bucket)) {
      drop_rows(line->second);
      look_after(line);
    }
    line = next;
  }
  for (auto row = rows_.begin(); row != rows_.end();) {
    row = left.contains(row->second.bucket) ? drop(row) : std::next(row);
  }
}

RowScheduler::OutRows RowScheduler::lose_all() {
  buckets_.clear();
  rows_.clear();
  row_bytes_ = 0;
  ready_.clear();
  released_.clear();
  lines_.clear();
  closed_ = 0;
  due_.clear();
  passed_over_.clear();
  ends_.clear();
  scanning_ = false;
  sweeping_ = false;
  read_once_ = false;
  scan_begun_ = number_ + 1;
  sweep_at_ = SteadyTime{};
  return std::exchange(out_, {});
}

void RowScheduler::admit(Row&& row, Lines::iterator line) {
  GroupBacklog& group = line->second;
  if (!group.keys.empty()) {
    ready_.erase(*group.keys.begin());
  }
  group.keys.insert(row.key());
  offer(group);
  keep(std::move(row));
}

void RowScheduler::keep(Row&& row) {
  row_bytes_ += row.payload.size();
  const RowKey key = row.key();
  rows_.emplace(key, std::move(row));
}

RowScheduler::Rows::iterator RowScheduler::drop(Rows::iterator row) {
  ready_.erase(row->first);
  row_bytes_ -= row->second.payload.size();
  return rows_.erase(row);
}

void RowScheduler::admit_single(Row&& row, SteadyTime now) {
  const auto released = released_.find(row.key());
  if (row.dead || (released != released_.end() && released->second.ours && released->second.until > now)) {
    return;  // a sweep has been asked for at its time
  }
  if (stops(row)) {
    sweep_by(now + *row.wait);
    return;
  }
  ready_.insert(row.key());
  keep(std::move(row));
}

void RowScheduler::close(Lines::iterator line, SteadyTime held_until, bool stored) {
  const bool crowded = !line->second.closed && closed_ >= settings_.closed_groups;
  if (stored && crowded && line->second.idle() && !settings_.resend_sent) {
    passed_over_.insert(hash_of(line->first));
    lines_.erase(line);
    return;
  }
  if (!line->second.closed) {
    line->second.closed = true;
    ++closed_;
  }
  line->second.closed_at = number_;
  line->second.held_until = held_until;
  look_after(line);
}

void RowScheduler::drop_rows(GroupBacklog& line) {
  for (const RowKey& key : line.keys) {
    drop(rows_.find(key));
  }
  line.keys.clear();
}

void RowScheduler::look_after(Lines::iterator line) {
  GroupBacklog& group = line->second;
  const bool ours = buckets_.contains(group.bucket);
  if (group.due) {
    due_.erase({*group.due, line->first});
    group.due.reset();
  }
  if (group.idle() && (!group.closed || !ours)) {
    closed_ -= group.closed ? 1 : 0;
    lines_.erase(line);
    return;
  }
  const bool consumed = group.blocked ? group.idle() : group.keys.size() <= settings_.per_group / 4;
  if (group.closed && ours && consumed) {
    group.due = group.held_until;
    due_.insert({*group.due, line->first});
  }
}

std::vector<Row> RowScheduler::take(std::size_t max, std::size_t bytes) {
  std::vector<Row> taken;
  std::size_t taken_bytes = 0;
  while (!ready_.empty() && taken.size() < max && taken_bytes < bytes) {
    const auto row = rows_.find(*ready_.begin());
    ready_.erase(ready_.begin());
    out_.emplace(row->first, Out{.group = row->second.group,
                                 .bucket = row->second.bucket,
                                 .number = ++handed_out_,
                                 .tries = row->second.retries});
    row_bytes_ -= row->second.payload.size();
    taken_bytes += row->second.payload.size();
    if (!row->second.group.id.empty()) {
      const auto line = lines_.find(row->second.group);
      line->second.keys.erase(row->first);
      line->second.at_work.insert(row->first);
      offer(line->second);
      look_after(line);
    }
    taken.push_back(std::move(row->second));
    rows_.erase(row);
  }
  return taken;
}

void RowScheduler::release(const RowKey& key, const Fate& fate, SteadyTime now) {
  const SteadyTime until = now + fate.wait;
  sweep_by(until);
  // Of what the database says itself there may be half, so that it leaves room for what only we know.
  const std::size_t most = fate.stored ? settings_.closed_groups : 2 * settings_.closed_groups;
  if (released_.size() < most || released_.contains(key)) {
    released_[key] = {until, !fate.stored};
  }
}

void RowScheduler::handled(const RowKey& key) {
  const auto out = out_.find(key);
  // What is sent again in any case is told apart by where its group has come to.
  if (out == out_.end() || out->second.group.id.empty() || settings_.resend_sent) {
    return;
  }
  const auto line = lines_.find(out->second.group);
  SLUICE_ASSERT(line != lines_.end());
  if (line->second.at_work.erase(out->first) == 0) {
    return;  // it was told before
  }
  ++line->second.unmarked;
  offer(line->second);
  look_after(line);
}

SendOrder RowScheduler::send_order(std::span<const std::optional<RowKey>> keys) const {
  SendOrder order;
  std::map<RowKey, std::size_t> ours;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto out = keys[i] ? out_.find(*keys[i]) : out_.end();
    if (out == out_.end() || out->second.overtakes) {
      order.never.push_back(i);
    } else {
      ours.emplace(out->first, i);
    }
  }
  std::set<RowKey> sent;
  std::map<Group, std::size_t> lists;
  for (const auto& [key, place] : ours) {
    const Group& group = out_.at(key).group;
    if (group.id.empty()) {
      order.now.push_back({place});
      continue;
    }
    const auto& at_work = lines_.at(group).at_work;
    if (std::all_of(at_work.begin(), at_work.lower_bound(key),
                    [&](const RowKey& before) { return sent.contains(before); })) {
      sent.insert(key);
      const auto [list, fresh] = lists.try_emplace(group, order.now.size());
      if (fresh) {
        order.now.emplace_back();
      }
      order.now[list->second].push_back(place);
    }
  }
  return order;
}

std::optional<RowScheduler::Out> RowScheduler::settled(const RowKey& key, Fate fate, SteadyTime now) {
  const auto found = out_.find(key);
  if (found == out_.end()) {
    return std::nullopt;
  }
  if (reading_) {
    settled_meanwhile_.insert(key);
  }
  Out out = std::move(found->second);
  const RowKey place = found->first;
  out_.erase(found);
  const bool ends = fate.kind == Fate::Kind::sent || (fate.kind == Fate::Kind::dead && !settings_.filter.hold_dead);
  if (out.group.id.empty()) {
    if (!ends && fate.kind != Fate::Kind::dead) {
      release(key, fate, now);
    }
    return out;
  }
  const auto line = lines_.find(out.group);
  SLUICE_ASSERT(line != lines_.end());
  GroupBacklog& group = line->second;
  const bool unsent = group.at_work.erase(place) > 0;
  group.unmarked -= unsent ? 0 : 1;
  if (fate.kind != Fate::Kind::put_back) {
    group.passed = std::max(group.passed, place);
  }
  if (ends) {
    offer(group);
    look_after(line);
    return out;
  }
  drop_rows(group);
  if (unsent) {
    std::for_each(group.at_work.upper_bound(place), group.at_work.end(),
                  [this](const RowKey& later) { out_.at(later).overtakes = true; });
  }
  // What the table says may be changed there; a wait of ours alone is kept.
  const Duration hold = fate.kind == Fate::Kind::dead ? kRecheck
                        : fate.stored                 ? std::min(fate.wait, kRecheck)
                                                      : fate.wait;
  // Another row of it may wait for longer.
  close(line, group.closed ? std::max(group.held_until, now + hold) : now + hold, fate.stored);
  return out;
}

// What is read when, and what becomes of what was read.

bool RowScheduler::crowded() {
  crowded_ = !passed_over_.empty() || (crowded_ && closed_ > settings_.closed_groups / 2);
  return crowded_;
}

Duration RowScheduler::quickest_sweeps() const { return std::min(kSweepPace, settings_.poll_interval); }

void RowScheduler::begin_sweep(SteadyTime now) {
  if (sweeping_ && scanning_ && !passed_over_.empty()) {
    sweep_pace_ = std::min<Duration>(2 * sweep_pace_, kRecheck * 60);  // so that one comes to its end
  }
  sweeping_ = true;
  cursor_.reset();
  passed_over_.clear();
  swept_at_ = now;
}

// What is passed over is read again with each sweep, which is to be for half of the time at most.
void RowScheduler::end_scan(SteadyTime now) {
  read_once_ = true;
  const bool found = ends_.empty() || cursor_ > ends_.back().second;
  // A look takes half of the time at most.
  const Duration took = now - std::max(tailed_at_, swept_at_);
  look_pause_ = std::max<Duration>(
      took, found ? kQuickestLook : std::min({2 * look_pause_, kSlowestLook, settings_.poll_interval}));
  if (looks_) {
    tail_at_ = std::min(tail_at_, now + look_pause_);
  }
  ends_.emplace_back(now, ends_.empty() ? cursor_ : std::max(cursor_, ends_.back().second));
  while (ends_.size() > 1 && ends_[1].first <= now - kOverlap) {
    ends_.pop_front();
  }
  if (!std::exchange(sweeping_, false)) {
    return;
  }
  sweep_pace_ = quickest_sweeps();
  if (!passed_over_.empty()) {
    sweep_pace_ = std::max<Duration>(sweep_pace_, 2 * (now - swept_at_));
    sweep_at_ = std::max(sweep_at_, swept_at_ + sweep_pace_);
  }
}

void RowScheduler::rows_told(SteadyTime now) {
  if (tail_at_ == SteadyTime::max()) {
    tail_at_ = std::max(now, tailed_at_ + kTailPace);
  }
}

void RowScheduler::change_told(SteadyTime now) {
  for (auto& [key, released] : released_) {
    released.ours = false;
  }
  for (auto line = lines_.begin(); line != lines_.end(); ++line) {
    if (line->second.held_until > now) {
      line->second.held_until = now;
      look_after(line);
    }
  }
  sweep_by(now);
}

void RowScheduler::sweep_by(SteadyTime time) {
  sweep_at_ = std::min(sweep_at_, std::max(time, swept_at_ + sweep_pace_));
}

bool RowScheduler::has_room() const { return rows_.size() <= capacity_ / 2 && row_bytes_ <= settings_.bytes / 2; }

ReadOrder RowScheduler::next_read(SteadyTime now) {
  SLUICE_ASSERT(!reading_);
  ReadOrder idle;
  if (buckets_.empty()) {
    return idle;
  }
  auto order = groups_first_ ? group_order(now) : page_order(now);
  if (!order) {
    order = groups_first_ ? page_order(now) : group_order(now);
  }
  if (order) {
    groups_first_ = order->kind == ReadOrder::Kind::page;
    order->number = number_;
    std::transform(buckets_.begin(), buckets_.end(), std::back_inserter(order->buckets),
                   [](const auto& bucket) { return bucket.first; });
    order->request.buckets = order->buckets;
    order->request.without = order->without;
    order->request.filter = &settings_.filter;
    reading_ = true;
    return *std::move(order);
  }
  // What could be done now waits for room, and whoever makes it wakes the reader.
  for (const SteadyTime time : {due_.empty() ? SteadyTime::max() : due_.begin()->first, sweep_at_, tail_at_}) {
    idle.wake = time > now ? std::min(idle.wake, time) : idle.wake;
  }
  return idle;
}

std::optional<ReadOrder> RowScheduler::group_order(SteadyTime now) {
  if (due_.empty() || due_.begin()->first > now || rows_.size() >= capacity_ || row_bytes_ >= settings_.bytes) {
    return std::nullopt;
  }
  const std::size_t most = std::clamp<std::size_t>((capacity_ - rows_.size()) / settings_.per_group, 1, kGroupsAtOnce);
  ReadOrder order{.kind = ReadOrder::Kind::groups};
  for (auto due = due_.begin(); due != due_.end() && due->first <= now && order.groups.size() < most; ++due) {
    order.groups.push_back(due->second);
  }
  order.request.limit = settings_.per_group;
  order.request.bytes = settings_.bytes - row_bytes_;
  ++number_;
  return order;
}

std::optional<ReadOrder> RowScheduler::page_order(SteadyTime now) {
  if (!has_room()) {
    return std::nullopt;
  }
  const bool may_begin_again = !settings_.resend_sent || (rows_.empty() && out_.empty() && !scanning_);
  ++number_;
  if (now >= sweep_at_ && may_begin_again) {
    begin_sweep(now);
    scanning_ = true;
    scan_begun_ = number_;
    sweep_at_ = now + std::max(settings_.poll_interval, sweep_pace_);
    std::erase_if(released_, [now](const auto& row) { return row.second.until <= now; });
    for (const auto& [key, released] : released_) {
      sweep_by(released.until);
    }
    tail_at_ = SteadyTime::max();
  } else if (!scanning_ && tail_at_ <= now) {
    scanning_ = true;
    const bool long_known = !ends_.empty() && ends_.front().first <= now - kOverlap;
    if (ends_.empty() || (!long_known && !settings_.resend_sent)) {
      begin_sweep(now);
    } else {
      cursor_ = settings_.resend_sent ? ends_.back().second : ends_.front().second;
    }
    scan_begun_ = number_;
    tailed_at_ = now;
    tail_at_ = SteadyTime::max();
  } else if (!scanning_) {
    --number_;
    return std::nullopt;
  }
  ReadOrder order{.kind = ReadOrder::Kind::page};
  order.without = closed_groups();
  order.request.beyond = cursor_;
  order.request.limit = std::min(settings_.fetch_limit, capacity_ - rows_.size());
  order.request.bytes = settings_.bytes - row_bytes_;
  return order;
}

std::vector<Group> RowScheduler::closed_groups() const {
  std::vector<Group> groups;
  std::size_t bytes = 0;
  for (const auto& [group, line] : lines_) {
    const std::size_t size = group.type.size() + group.id.size();
    if (line.closed && bytes + size <= kMostPassedOver) {
      groups.push_back(group);
      bytes += size;
    }
  }
  return groups;
}

void RowScheduler::end_read() {
  reading_ = false;
  settled_meanwhile_.clear();
}

// Rows of a bucket count only where it was ours before the read began.
bool RowScheduler::takes(const Row& row, const ReadOrder& order) const {
  const auto bucket = buckets_.find(row.bucket);
  return bucket != buckets_.end() && order.number >= bucket->second && !rows_.contains(row.key()) &&
         !out_.contains(row.key()) && !settled_meanwhile_.contains(row.key());
}

std::vector<Row> RowScheduler::page_read(const ReadOrder& order, Page page, SteadyTime now) {
  SLUICE_ASSERT(reading_);
  std::vector<Row> unreadable;
  bool ends = false;
  if (order.number >= scan_begun_ && scanning_) {
    if (!page.rows.empty()) {
      cursor_ = RowKey{.id = page.rows.back().id, .text = page.rows.back().text};
    }
    scanning_ = page.more && !page.rows.empty();
    ends = !scanning_;
  }
  for (Row& row : page.rows) {
    if (!takes(row, order)) {
      continue;
    }
    if (broken(row)) {
      unreadable.push_back(row);
    }
    if (broken(row) && (row.group.id.empty() || !settings_.filter.hold_dead)) {
      continue;
    }
    if (row.group.id.empty()) {
      admit_single(std::move(row), now);
    } else {
      admit_of_group(std::move(row), now);
    }
  }
  if (ends) {
    end_scan(now);
  }
  end_read();
  return unreadable;
}

void RowScheduler::admit_of_group(Row&& row, SteadyTime now) {
  auto line = lines_.find(row.group);
  const bool known = line != lines_.end();
  if (known ? line->second.closed : !passed_over_.empty() && passed_over_.contains(hash_of(row.group))) {
    return;
  }
  if (!known) {
    line = lines_.emplace(row.group, GroupBacklog{.bucket = row.bucket}).first;
  }
  const bool first = line->second.keys.empty() && line->second.at_work.empty();
  if (stops(row)) {
    line->second.blocked = !first;
    close(line, first ? hold_of(row, now) : now, true);
  } else if (line->second.keys.size() >= settings_.per_group) {
    close(line, now);
  } else {
    admit(std::move(row), line);
  }
}

std::vector<Row> RowScheduler::groups_read(const ReadOrder& order, std::vector<Page> answers, SteadyTime now) {
  SLUICE_ASSERT(reading_);
  std::vector<Row> unreadable;
  for (std::size_t i = 0; i < order.groups.size() && i < answers.size(); ++i) {
    const auto line = lines_.find(order.groups[i]);
    if (line == lines_.end() || !line->second.closed || line->second.closed_at >= order.number) {
      continue;  // what has failed since then is to be read first
    }
    auto& rows = answers[i].rows;
    // What was settled meanwhile is in the past; of everything else it is known whether it is ours.
    rows.erase(std::remove_if(rows.begin(), rows.end(), [&](const Row& row) { return !takes(row, order); }),
               rows.end());
    load(line, std::move(answers[i]), now, unreadable);
  }
  end_read();
  return unreadable;
}

void RowScheduler::load(Lines::iterator line, Page&& answer, SteadyTime now, std::vector<Row>& unreadable) {
  GroupBacklog& group = line->second;
  --closed_;
  group.closed = false;
  group.blocked = false;
  bool any = false;
  for (Row& row : answer.rows) {
    if (settings_.resend_sent && row.key() <= group.passed) {
      continue;
    }
    if (broken(row)) {
      unreadable.push_back(row);
    }
    if (stops(row)) {
      group.blocked = !group.keys.empty() || !group.at_work.empty();
      close(line, group.blocked ? now : hold_of(row, now));
      return;
    }
    if (!broken(row)) {
      admit(std::move(row), line);
      any = true;
    }
  }
  if (answer.more) {
    group.blocked = !any;
    close(line, now);
    return;
  }
  look_after(line);
}

SteadyTime RowScheduler::hold_of(const Row& row, SteadyTime now) const {
  return now + (row.dead || !row.wait ? kRecheck : std::min(*row.wait, kRecheck));
}

}  // namespace sluice::queue::outbox
