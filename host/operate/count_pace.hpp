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
  /// Looks are kept for so long, and at least two of them.
  explicit CountPace(Duration window) : window_(window) {}

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

  /// Negative where it shrinks; nothing before there are two looks.
  std::optional<double> per_second() const {
    if (looks_.size() < 2) {
      return std::nullopt;
    }
    const auto& [since, before] = looks_.front();
    const auto& [at, last] = looks_.back();
    return (static_cast<double>(last) - static_cast<double>(before)) /
           std::chrono::duration<double>(at - since).count();
  }
  /// When it is zero at that pace; nothing where it does not shrink, or in a year at the earliest.
  std::optional<Duration> empty_in() const {
    constexpr double kLongest = 365.0 * 24 * 3600;
    const double left = looks_.empty() ? 0 : static_cast<double>(looks_.back().second);
    const double pace = per_second().value_or(0);
    return pace < 0 && left > 0 && left <= kLongest * -pace
               ? std::optional(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(left / -pace)))
               : std::nullopt;
  }

 private:
  Duration window_;
  std::deque<std::pair<Duration, std::uint64_t>> looks_;
};

}  // namespace sluice::operate
