#pragma once

#include <boost/core/noncopyable.hpp>
#include <chrono>
#include <cstdint>

namespace sluice {

/// A span of time. Every duration in the product has this type; units appear only in text.
using Duration = std::chrono::nanoseconds;

/// A point on the wall clock, UTC. Only stored records and request signatures use it.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

/// A point on the monotonic clock. Leases, deadlines, back-off and rate limits use it.
using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

/// Tells the time. One of the four seams: tests and the simulation bring their own.
///
/// Thread-safe. Implementations are resources: one owner, references elsewhere.
class Clock : boost::noncopyable {
 public:
  virtual ~Clock() = default;

  /// The wall clock; may jump in either direction between two calls.
  virtual WallTime wall_now() const = 0;

  /// The monotonic clock; never goes back.
  virtual SteadyTime steady_now() const = 0;

  /// When, on the machine's monotonic clock, a thread that waits until `time` of this one goes on. A clock that a test
  /// moves lets it go on at once, as nobody else would move the clock meanwhile.
  virtual SteadyTime machine_time(SteadyTime time) const { return time; }
};

/// The machine's clocks.
class SystemClock final : public Clock {
 public:
  WallTime wall_now() const override;
  SteadyTime steady_now() const override;
};

}  // namespace sluice
