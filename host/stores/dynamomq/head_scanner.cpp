#include "host/stores/dynamomq/head_scanner.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/timestamp.hpp"
#include "host/stores/dynamomq/schema.hpp"

namespace sluice::queue::dynamomq {
namespace {

constexpr double kUnreadUnits = 25;  // a guess at what nobody has read

constexpr std::size_t kSecondsLength = 19;           // of "2026-11-20T23:14:00"
constexpr std::string_view kBehindTimestamps = ":";  // the character after '9'
constexpr double kSmallestRead = 0.5;                // units; DynamoDB bills no less

std::string second_of(WallTime time) { return format_timestamp(time).substr(0, kSecondsLength); }

/// From where on the tail of a pass is read that ended then.
std::string tail_of(WallTime end) { return second_of(end - HeadScanner::kTailMargin); }

const std::string* sort_key_of(const dynamo::Item& key) { return dynamo::find<std::string>(key, attribute::kSentAt); }

WallTime time_of(const std::string& sort_key) { return parse_timestamp_or_end(sort_key).value_or(WallTime{}); }

}  // namespace

double HeadMap::units() const {
  return std::accumulate(stretches_.begin(), stretches_.end(), 0.0,
                         [](double sum, const auto& stretch) { return sum + stretch.second.units; });
}

void HeadMap::append(const Stretch& stretch, bool again, SteadyTime now) {
  if (!stretches_.empty() && stretch.to <= stretches_.rbegin()->first) {
    Known& known = stretches_.lower_bound(stretch.to)->second;
    sooner(known.due, stretch.due);
    known.units += again ? 0 : stretch.units;
    return;
  }
  // Where nothing is held, nothing is to be looked for: one stretch says so as well as many.
  if (!stretches_.empty() && stretch.units == 0 && !stretch.due) {
    if (const auto last = std::prev(stretches_.end()); last->second.units == 0 && !last->second.due) {
      now = last->second.read_at;
      stretches_.erase(last);
    }
  }
  stretches_.emplace_hint(stretches_.end(), stretch.to, Known{stretch.units, stretch.due, now});
}

void HeadMap::append_unread(const std::string& to) { append({to, kUnreadUnits, WallTime{}}, false, SteadyTime{}); }

void HeadMap::replace(const std::string& to, const std::vector<Stretch>& found, const dynamo::Item& rest,
                      table::Moment now) {
  const auto read = stretches_.find(to);
  if (read == stretches_.end()) {
    return;  // the map was made anew meanwhile
  }
  const Known before = read->second;
  stretches_.erase(read);
  for (const Stretch& stretch : found) {
    const bool last = rest.empty() && &stretch == &found.back();
    // To the last one belongs all that is left of what was read, so that there is no gap.
    Known& known = stretches_[last ? to : stretch.to];
    known.units += stretch.units;
    known.read_at = now.steady;
    sooner(known.due, stretch.due);
  }
  if (!rest.empty()) {
    Known& left = stretches_[to];
    left.units += before.units;
    left.read_at = before.read_at;
    left.after = rest;
    sooner(left.due, now.wall - std::chrono::seconds(1));
  }
}

void HeadMap::expect(std::string_view sort_key, WallTime due) {
  if (const auto stretch = stretches_.lower_bound(sort_key); stretch != stretches_.end()) {
    sooner(stretch->second.due, due);
  }
}

void HeadMap::expect_anywhere(WallTime due) {
  for (auto& [to, known] : stretches_) {
    sooner(known.due, due);
  }
}

HeadMap::Place HeadMap::place_of(Stretches::const_iterator stretch) const {
  return {stretch == stretches_.begin() ? std::string() : std::prev(stretch)->first, stretch->first,
          stretch->second.after};
}

HeadMap::Stretches::const_iterator HeadMap::first() const {
  return std::min_element(stretches_.begin(), stretches_.end(), [](const auto& left, const auto& right) {
    return left.second.due.value_or(WallTime::max()) < right.second.due.value_or(WallTime::max());
  });
}

std::optional<WallTime> HeadMap::first_due() const { return empty() ? std::nullopt : first()->second.due; }

std::optional<HeadMap::Place> HeadMap::due(WallTime now) const {
  const auto due = first_due();
  return due && *due < now ? std::optional(place_of(first())) : std::nullopt;
}

std::optional<HeadMap::Place> HeadMap::stale(SteadyTime time) const {
  const auto oldest = std::min_element(stretches_.begin(), stretches_.end(), [](const auto& left, const auto& right) {
    return left.second.read_at < right.second.read_at;
  });
  return oldest != stretches_.end() && oldest->second.read_at <= time ? std::optional(place_of(oldest)) : std::nullopt;
}

double ReadPurse::held(SteadyTime now) const {
  return std::min(most_, units_ + per_second_ * std::chrono::duration<double>(now - at_).count());
}

Duration ReadPurse::wait(SteadyTime now) const {
  const double missing = -held(now);
  return missing < 0 ? Duration::zero()
                     : std::chrono::duration_cast<Duration>(std::chrono::duration<double>(missing / per_second_)) +
                           std::chrono::milliseconds(1);
}

void ReadPurse::spend(double units, SteadyTime now) {
  units_ = held(now) - units;
  at_ = now;
}

// In UTF-8 order '.' comes before 'Z', so that "…05Z" is behind every fraction of that second.
std::string due_bound(WallTime now) { return second_of(now) + 'Z'; }

void HeadScanner::begin_pass() {
  map_.clear();
  anywhere_due_.reset();
  resume_after_.clear();
  resume_from_.clear();
  leap_.reset();
  fruitless_ = 0;
  leaps_ = true;
}

// Never twice in a row: what is new must not wait for what is old.
std::optional<ScanStep> HeadScanner::look_back(table::Moment now) {
  if (looked_back_ || leap_) {
    return std::nullopt;
  }
  if (anywhere_due_ && *anywhere_due_ < now.wall) {
    map_.expect_anywhere(*anywhere_due_);
    anywhere_due_.reset();
  }
  auto kind = ScanStep::Kind::due;
  auto place = due_purse_.open(now.steady) ? map_.due(now.wall) : std::nullopt;
  if (!place && blind_purse_.open(now.steady)) {
    kind = ScanStep::Kind::blind;
    place = map_.stale(now.steady - kBlindInterval);
  }
  if (!place) {
    return std::nullopt;
  }
  const auto& [from, to, after] = *place;
  return ScanStep{.kind = kind, .from = from, .to = to, .after = after, .limit = kBackLimit, .at = now};
}

std::int64_t HeadScanner::limit(table::Moment now, std::size_t want, bool refill) {
  if (refill && now.steady - last_step_at_ <= kQuickRefill) {
    page_ = std::min(page_ * 2, kLargestPage);
  }
  last_step_at_ = now.steady;
  const auto wanted = static_cast<std::int64_t>(std::min<std::size_t>(want, kLargestPage));
  const double ready = static_cast<double>(std::max(page_, 2 * wanted));
  return std::min<std::int64_t>(kLargestLimit, static_cast<std::int64_t>(ready / std::max(0.1, ready_share_)));
}

ScanStep HeadScanner::next(table::Moment now, std::size_t want) {
  ScanStep step{.to = bounded_ ? due_bound(now.wall) : std::string(), .at = now};
  if (begins_at_head()) {
    begin_pass();
    step.kind = ScanStep::Kind::head;
  } else if (auto back = look_back(now)) {
    looked_back_ = true;
    return *back;
  } else if (leap_) {
    const WallTime low = time_of(leap_->low);
    return {.kind = ScanStep::Kind::leap,
            .from = format_timestamp(low + (leap_->high - low) / 2),
            .to = due_bound(now.wall),
            .limit = kLeapLimit,
            .at = now};
  } else if (position_ == Position::end) {
    step.kind = ScanStep::Kind::tail;
    step.from = tail_of(std::min(end_reached_, now.wall));
  } else {
    step.kind = ScanStep::Kind::onward;
    step.from = resume_from_;
    step.after = resume_after_;
    // A wall clock that was set back must not put the start outside the bounds, which DynamoDB refuses.
    const std::string* start = sort_key_of(step.after);
    if (!step.to.empty()) {
      step.to = std::max({step.to, step.from, start == nullptr ? std::string() : *start});
    }
  }
  looked_back_ = false;
  step.limit = limit(now, want, step.kind == ScanStep::Kind::onward);
  return step;
}

std::optional<ScanStep> HeadScanner::next_unsorted(table::Moment now) {
  if (!bounded_ || position_ != Position::end || now.steady < unsorted_at_) {
    return std::nullopt;
  }
  return ScanStep{
      .kind = ScanStep::Kind::unsorted, .from = std::string(kBehindTimestamps), .limit = kSmallestPage, .at = now};
}

std::optional<ScanStep> HeadScanner::next_front(table::Moment now) {
  if (now.steady < front_at_) {
    return std::nullopt;
  }
  ScanStep step{.kind = ScanStep::Kind::front, .to = due_bound(now.wall), .limit = front_limit_, .at = now};
  const std::string* broke_off = sort_key_of(front_after_);
  if (broke_off != nullptr && *broke_off <= step.to) {  // not so where a wall clock was set back
    step.after = front_after_;
  }
  return step;
}

void HeadScanner::absorb(const ScanStep& step, const ScanFinding& finding) {
  if (step.kind == ScanStep::Kind::front || step.kind == ScanStep::Kind::head) {
    absorb_front(step, finding);
  }
  if (step.kind == ScanStep::Kind::unsorted) {
    unsorted_at_ = step.at.steady + kUnsortedInterval;
    bounded_ = false;  // the next pass finds out whether there still is much in the future
  }
  if (step.kind == ScanStep::Kind::front || step.kind == ScanStep::Kind::unsorted) {
    return;
  }
  if (step.looks_back()) {
    return absorb_back(step, finding);
  }
  if (step.kind == ScanStep::Kind::leap) {
    return absorb_leap(step, finding);
  }
  const std::string* reached = sort_key_of(finding.last_key);
  const bool in_future = reached != nullptr && *reached > due_bound(step.at.wall);
  bool much_in_future = in_future;
  if (finding.items > 0) {
    const auto items = static_cast<double>(finding.items);
    ready_share_ = static_cast<double>(finding.ready) / items;
    fruitless_ += finding.read_units;
    leaps_ = leaps_ && finding.ready == 0;
    much_in_future |= finding.read_units * static_cast<double>(finding.future) / items > kLightUnits / 2;
  }
  if (much_in_future && !std::exchange(bounded_, true)) {
    unsorted_at_ = std::max(unsorted_at_, step.at.steady + std::chrono::seconds(1));
  }
  for (const Stretch& stretch : finding.stretches) {
    map_.append(stretch, step.kind == ScanStep::Kind::tail, step.at.steady);
  }
  resume_from_.clear();
  resume_after_ = finding.last_key;
  if (!finding.last_key.empty() && !in_future) {
    position_ = Position::middle;
    if (leaps_ && fruitless_ > kLeapAfterUnits && reached != nullptr &&
        time_of(*reached) + kLeapPrecision < step.at.wall) {
      leap_ = Leap{*reached, step.at.wall, 0};
    }
    return;
  }
  // Late writers come in behind the last record too, as far as the tail does not reach back.
  map_.append({tail_of(step.at.wall)}, true, step.at.steady);
  position_ = Position::end;
  end_reached_ = step.at.wall;
  future_due_ = finding.future_due;
  leaps_ = false;
  resume_after_.clear();
  if (finding.items == 0) {
    ready_share_ = 1;
  }
}

void HeadScanner::absorb_back(const ScanStep& step, const ScanFinding& finding) {
  const auto items = static_cast<double>(std::max<std::size_t>(1, finding.items));
  const double units = std::max(kSmallestRead, finding.read_units);
  ReadPurse& purse = step.kind == ScanStep::Kind::due ? due_purse_ : blind_purse_;
  purse.spend(units * (1 - static_cast<double>(finding.ready) / items), step.at.steady);
  map_.replace(step.to, finding.stretches, finding.last_key, step.at);
}

void HeadScanner::absorb_front(const ScanStep& step, const ScanFinding& finding) {
  const bool goes_on = step.kind == ScanStep::Kind::front && finding.ends_fresh && !finding.last_key.empty();
  front_at_ = step.at.steady + (goes_on ? Duration::zero() : kFrontInterval);
  front_limit_ = goes_on ? std::min(front_limit_ * 4, kBackLimit) : kFrontLimit;
  front_after_ = goes_on ? finding.last_key : dynamo::Item();
}

void HeadScanner::absorb_leap(const ScanStep& step, const ScanFinding& finding) {
  if (!leap_) {
    return;
  }
  const bool hidden = finding.ready == 0 && !finding.stretches.empty();
  if (hidden) {
    leap_->low = std::max(leap_->low, finding.stretches.back().to);
  } else {
    leap_->high = time_of(step.from);
  }
  ++leap_->made;
  if (leap_->made < kMostLeaps && time_of(leap_->low) + kLeapPrecision < leap_->high) {
    return;
  }
  map_.append_unread(leap_->low);
  ready_share_ = 1;
  resume_after_.clear();
  resume_from_ = leap_->low;
  leaps_ = false;  // once a pass
  leap_.reset();
}

std::optional<Duration> HeadScanner::next_due(table::Moment now) const {
  std::optional<WallTime> first = map_.first_due();
  sooner(first, anywhere_due_);
  std::optional<Duration> next;
  if (first) {
    const Duration purse = light() ? Duration::zero() : due_purse_.wait(now.steady);
    next = std::max<Duration>({*first - now.wall + kInstant, purse, Duration::zero()});
  }
  if (future_due_) {
    sooner(next, std::max<Duration>(*future_due_ - now.wall + kInstant, Duration::zero()));
  }
  return next;
}

void HeadScanner::rewind(const std::vector<std::string>& sort_keys) {
  if (sort_keys.empty()) {
    return;
  }
  page_ = std::max(page_ / 4, kSmallestPage);
  if (position_ == Position::begin) {
    return;
  }
  if (!light()) {
    // What lies between them is held by others, and need not be read again.
    for (const std::string& key : sort_keys) {
      map_.expect(key, WallTime{});
    }
    return;
  }
  position_ = Position::middle;
  resume_after_.clear();
  resume_from_ = *std::min_element(sort_keys.begin(), sort_keys.end());
}

void HeadScanner::restart() {
  position_ = Position::begin;
  map_.clear();
  anywhere_due_.reset();
  future_due_.reset();
  leap_.reset();
  front_after_.clear();
}

}  // namespace sluice::queue::dynamomq
