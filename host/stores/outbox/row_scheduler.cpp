#include "host/stores/outbox/row_scheduler.hpp"

#include <algorithm>
#include <iterator>

#include "base/assert.hpp"

namespace sluice::queue::outbox {
namespace {

// What is read and not handed out yet, in pages.
constexpr std::size_t kPagesAhead = 2;
constexpr std::size_t kLeastCapacity = 256;

}  // namespace

RowScheduler::RowScheduler(Settings settings)
    : settings_(std::move(settings)),
      capacity_(std::max(kPagesAhead * settings_.fetch_limit, kLeastCapacity)),
      sweep_pace_(quickest_sweeps()) {}

void RowScheduler::take_buckets(std::span<const std::uint32_t> buckets) {
  for (const std::uint32_t bucket : buckets) {
    buckets_.emplace(bucket, number_ + 1);
  }
  bucket_list_.clear();
  std::transform(buckets_.begin(), buckets_.end(), std::back_inserter(bucket_list_),
                 [](const auto& bucket) { return bucket.first; });
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
  take_buckets({});
  for (auto line = lines_.begin(); line != lines_.end();) {
    const auto next = std::next(line);
    if (left.contains(line->second.bucket)) {
      drop_rows(line->second);
      look_after(line);
    }
    line = next;
  }
  for (auto row = rows_.begin(); row != rows_.end();) {
    if (left.contains(row->second.bucket)) {
      ready_.erase(row->first);
      row_bytes_ -= row->second.payload.size();
      row = rows_.erase(row);
    } else {
      ++row;
    }
  }
}

std::vector<RowKey> RowScheduler::lose_all() {
  std::vector<RowKey> keys;
  for (const auto& [key, out] : out_) {
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  buckets_.clear();
  bucket_list_.clear();
  rows_.clear();
  row_bytes_ = 0;
  ready_.clear();
  out_.clear();
  lines_.clear();
  closed_ = 0;
  due_.clear();
  passed_over_.clear();
  passing_over_.clear();
  ends_.clear();
  scanning_ = false;
  sweeping_ = false;
  read_once_ = false;
  scan_begun_ = number_ + 1;
  sweep_at_ = SteadyTime{};
  return keys;
}

std::size_t RowScheduler::out_of(std::uint32_t bucket) const {
  return static_cast<std::size_t>(
      std::count_if(out_.begin(), out_.end(), [bucket](const auto& out) { return out.second.bucket == bucket; }));
}

void RowScheduler::admit(Row&& row, Lines::iterator line) {
  GroupBacklog& group = line->second;
  if (!group.is_out && !group.keys.empty()) {
    ready_.erase(*group.keys.begin());
  }
  group.keys.insert(row.key());
  if (!group.is_out) {
    ready_.insert(*group.keys.begin());
  }
  row_bytes_ += row.payload.size();
  const RowKey key = row.key();
  rows_.emplace(key, std::move(row));
}

void RowScheduler::admit_single(Row&& row, SteadyTime now) {
  if (row.dead) {
    return;
  }
  if (stops(row)) {
    sweep_by(now + *row.wait);
    return;
  }
  ready_.insert(row.key());
  row_bytes_ += row.payload.size();
  const RowKey key = row.key();
  rows_.emplace(key, std::move(row));
}

void RowScheduler::close(Lines::iterator line, SteadyTime held_until) {
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
    ready_.erase(key);
    const auto row = rows_.find(key);
    row_bytes_ -= row->second.payload.size();
    rows_.erase(row);
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
  if (!group.is_out && group.keys.empty() && (!group.closed || !ours)) {
    closed_ -= group.closed ? 1 : 0;
    lines_.erase(line);
    return;
  }
  const bool consumed =
      group.blocked ? group.keys.empty() && !group.is_out : group.keys.size() <= settings_.per_group / 4;
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
    out_.emplace(row->first, Out{row->second.group, row->second.bucket});
    row_bytes_ -= row->second.payload.size();
    taken_bytes += row->second.payload.size();
    if (!row->second.group.id.empty()) {
      const auto line = lines_.find(row->second.group);
      line->second.keys.erase(row->first);
      line->second.is_out = true;
      look_after(line);
    }
    taken.push_back(std::move(row->second));
    rows_.erase(row);
  }
  return taken;
}

void RowScheduler::settled(const RowKey& key, Fate fate, SteadyTime now) {
  const auto found = out_.find(key);
  if (found == out_.end()) {
    return;
  }
  if (reading_) {
    settled_meanwhile_.insert(key);
  }
  const Out out = std::move(found->second);
  out_.erase(found);
  const bool ends = fate.kind == Fate::Kind::sent || (fate.kind == Fate::Kind::dead && !settings_.hold_dead);
  if (out.group.id.empty()) {
    if (!ends && fate.kind != Fate::Kind::dead) {
      sweep_by(now + fate.wait);
    }
    return;
  }
  const auto line = lines_.find(out.group);
  SLUICE_ASSERT(line != lines_.end());
  line->second.is_out = false;
  line->second.passed = std::max(line->second.passed, key.id);
  if (ends) {
    if (!line->second.keys.empty()) {
      ready_.insert(*line->second.keys.begin());
    }
    look_after(line);
    return;
  }
  drop_rows(line->second);
  if (fate.stored && !line->second.closed && closed_ >= settings_.closed_groups && !settings_.resend_sent) {
    pass_over(out.group);
    lines_.erase(line);
    return;
  }
  close(line, now + (fate.kind == Fate::Kind::dead ? kRecheck : std::min(fate.wait, kRecheck)));
}

}  // namespace sluice::queue::outbox
