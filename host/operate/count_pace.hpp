#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "base/clock.hpp"

namespace sluice::operate {

/// How fast a count grows or shrinks, from looks at it. A value.
class CountPace {
 public:
  /// Looks are kept for so long, and at least two of them; there is no pace before they are `shortest` apart.
  explicit CountPace(Duration window, Duration shortest = Duration::zero()) : window_(window), shortest_(shortest) {}

  /// `at`: since whenever all looks have it; one that is not later than the last is passed over.
  void add(Duration at, std::uint64_t count) {
    if (!looks_.empty() && at <= looks_.back().first) {
      return;
    }
    looks_.emplace_back(at, count);
    // The oldest that reaches back far enough stays, so that seldom looks have a pace too.
    while (looks_.size() > 2 && at - looks_[1].first >= window_) {
      looks_.pop_front();
    }
  }

  /// Zero before there are any looks.
  std::uint64_t last() const { return looks_.empty() ? 0 : looks_.back().second; }
  /// What the pace is taken over.
  Duration span() const { return looks_.empty() ? Duration::zero() : looks_.back().first - looks_.front().first; }

  /// Negative where it shrinks; nothing before there are two looks.
  std::optional<double> per_second() const {
    if (looks_.size() < 2 || span() < shortest_) {
      return std::nullopt;
    }
    const double change = static_cast<double>(last()) - static_cast<double>(looks_.front().second);
    return change / std::chrono::duration<double>(span()).count();
  }
  /// When it is zero at that pace; nothing where it does not shrink, or in a year at the earliest.
  std::optional<Duration> empty_in() const {
    constexpr double kLongest = 365.0 * 24 * 3600;
    const double left = static_cast<double>(last());
    const double pace = per_second().value_or(0);
    return pace < 0 && left > 0 && left <= kLongest * -pace
               ? std::optional(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(left / -pace)))
               : std::nullopt;
  }

 private:
  Duration window_;
  Duration shortest_;
  std::deque<std::pair<Duration, std::uint64_t>> looks_;
};

}  // namespace sluice::operate
