#include "host/stores/dynamomq/head_scanner.hpp"

#include <algorithm>

#include "base/timestamp.hpp"
#include "host/stores/dynamomq/schema.hpp"

namespace sluice::queue::dynamomq {
namespace {

constexpr std::size_t kSecondsLength = 19;                  // of "2026-11-20T23:14:00"
constexpr Duration kInstant = std::chrono::nanoseconds(1);  // what is hidden until a time is due just after it
constexpr std::string_view kBehindTimestamps = ":";         // the character after '9'

std::string second_of(WallTime time) { return format_timestamp(time).substr(0, kSecondsLength); }

Duration seconds(double count) { return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(count)); }

const std::string* sort_key_of(const dynamo::Item& key) { return dynamo::find<std::string>(key, attribute::kSentAt); }

}  // namespace

// In UTF-8 order '.' comes before 'Z', so that "…05Z" is behind every fraction of that second.
std::string due_bound(WallTime now) { return second_of(now) + 'Z'; }

bool HeadScanner::sweep_due(Moment now) const {
  if (now.steady >= blind_sweep_at_) {
    return true;
  }
  return next_due_ && *next_due_ < now.wall && now.steady >= earliest_sweep_at_;
}

void HeadScanner::begin_sweep(Moment now) {
  const Duration blind =
      std::clamp<Duration>(seconds(head_weight_ / kBlindUnitsPerSecond), kSweepInterval, kLongestSweepInterval);
  blind_sweep_at_ = now.steady + std::chrono::duration_cast<Duration>(blind * (0.8 + 0.4 * random_.unit()));
  earliest_sweep_at_ =
      now.steady + std::clamp<Duration>(seconds(head_weight_ / kDueUnitsPerSecond), kSweepGap, kLongestSweepInterval);
  next_due_.reset();
  resume_after_.clear();
  resume_from_.clear();
  pass_weight_ = 0;
  sweeping_ = true;
}

std::int64_t HeadScanner::limit(Moment now, std::size_t want, bool refill) {
  if (refill && now.steady - last_step_at_ <= kQuickRefill) {
    page_ = std::min(page_ * 2, kLargestPage);
  }
  last_step_at_ = now.steady;
  const auto wanted = static_cast<std::int64_t>(std::min<std::size_t>(want, kLargestPage));
  const double ready = static_cast<double>(std::max(page_, 2 * wanted));
  return std::min<std::int64_t>(kLargestLimit, static_cast<std::int64_t>(ready / std::max(0.1, ready_share_)));
}

ScanStep HeadScanner::next(Moment now, std::size_t want) {
  ScanStep step;
  step.at = now;
  step.to = bounded_ ? due_bound(now.wall) : std::string();
  const bool light = head_weight_ <= kLightUnits;
  if (position_ == Position::begin || (position_ == Position::end && light) || sweep_due(now)) {
    begin_sweep(now);
    step.kind = ScanStep::Kind::head;
  } else if (position_ == Position::end) {
    step.kind = ScanStep::Kind::tail;
    step.from = second_of(std::min(end_reached_, now.wall) - kTailMargin);
    sweeping_ = false;
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
  step.limit = limit(now, want, step.kind == ScanStep::Kind::onward);
  return step;
}

std::optional<ScanStep> HeadScanner::next_unsorted(Moment now) {
  if (!bounded_ || position_ != Position::end || now.steady < unsorted_at_) {
    return std::nullopt;
  }
  unsorted_at_ = now.steady + kUnsortedInterval;
  bounded_ = false;  // the next pass finds out whether there still is much in the future
  ScanStep step;
  step.kind = ScanStep::Kind::unsorted;
  step.from = kBehindTimestamps;
  step.at = now;
  step.limit = kSmallestPage;
  return step;
}

void HeadScanner::absorb(const ScanStep& step, const ScanFinding& finding) {
  if (finding.next_due) {
    expect(*finding.next_due);
  }
  if (step.kind == ScanStep::Kind::unsorted) {
    return;
  }
  if (finding.items > 0) {
    const auto items = static_cast<double>(finding.items);
    ready_share_ = static_cast<double>(finding.ready) / items;
    pass_weight_ += finding.read_units * static_cast<double>(finding.invisible) / items;
    const double future_units = finding.read_units * static_cast<double>(finding.future) / items;
    if (!bounded_ && future_units > kLightUnits / 2) {
      bounded_ = true;
      unsorted_at_ = std::max(unsorted_at_, step.at.steady + kSweepGap);
    }
  }
  const std::string* reached = sort_key_of(finding.last_key);
  const bool in_future = reached != nullptr && *reached > due_bound(step.at.wall);
  if (in_future && !bounded_) {
    bounded_ = true;
    unsorted_at_ = std::max(unsorted_at_, step.at.steady + kSweepGap);
  }
  resume_from_.clear();
  resume_after_ = finding.last_key;
  if (finding.last_key.empty() || in_future) {
    absorb_end(step, finding);
  } else {
    position_ = Position::middle;
    head_weight_ = sweeping_ ? std::max(head_weight_, pass_weight_) : head_weight_;
  }
}

void HeadScanner::absorb_end(const ScanStep& step, const ScanFinding& finding) {
  position_ = Position::end;
  end_reached_ = step.at.wall;
  future_due_ = finding.future_due;
  resume_after_.clear();
  if (sweeping_) {
    head_weight_ = pass_weight_;
  }
  if (finding.items == 0) {
    ready_share_ = 1;
  }
}

std::optional<Duration> HeadScanner::next_due(Moment now) const {
  std::optional<Duration> next;
  if (next_due_) {
    next = std::max<Duration>({*next_due_ - now.wall + kInstant, earliest_sweep_at_ - now.steady, Duration::zero()});
  }
  if (future_due_) {
    const Duration left = std::max<Duration>(*future_due_ - now.wall + kInstant, Duration::zero());
    next = next ? std::min(*next, left) : left;
  }
  return next;
}

void HeadScanner::expect(WallTime due) { next_due_ = next_due_ ? std::min(*next_due_, due) : due; }

void HeadScanner::rewind(std::string sort_key) {
  page_ = std::max(page_ / 4, kSmallestPage);
  if (position_ != Position::begin) {
    position_ = Position::middle;
    resume_after_.clear();
    resume_from_ = std::move(sort_key);
  }
}

void HeadScanner::restart() {
  position_ = Position::begin;
  next_due_.reset();
  future_due_.reset();
}

}  // namespace sluice::queue::dynamomq
