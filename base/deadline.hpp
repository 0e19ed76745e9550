#pragma once

#include <algorithm>

#include "base/clock.hpp"

namespace sluice {

/// The monotonic time by which a blocking call must have returned. A value; passed down, never reset on the way.
class Deadline {
 public:
  /// A deadline that never passes.
  static constexpr Deadline never() { return Deadline(SteadyTime::max()); }
  static constexpr Deadline at(SteadyTime time) { return Deadline(time); }
  /// A span that reaches beyond the clock's end means never.
  static Deadline after(const Clock& clock, Duration span) {
    const SteadyTime now = clock.steady_now();
    return span < SteadyTime::max() - now ? Deadline(now + span) : never();
  }

  constexpr SteadyTime time() const { return time_; }
  constexpr bool is_never() const { return time_ == SteadyTime::max(); }
  constexpr bool passed(SteadyTime now) const { return now >= time_; }
  /// What is left at `now`; zero once passed, `Duration::max()` for never().
  constexpr Duration left(SteadyTime now) const {
    if (is_never()) {
      return Duration::max();
    }
    return std::max(Duration::zero(), Duration(time_ - now));
  }
  constexpr Deadline earlier(Deadline other) const { return time_ < other.time_ ? *this : other; }

 private:
  explicit constexpr Deadline(SteadyTime time) : time_(time) {}
  SteadyTime time_;
};

}  // namespace sluice
