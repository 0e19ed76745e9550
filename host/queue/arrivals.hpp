#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/queue/source.hpp"

namespace sluice::queue {

/// Waits for what may have come to a source, for those who claim by call and not as a job. Thread-safe; a source has
/// one, which goes before the source does.
class Arrivals : boost::noncopyable {
 public:
  Arrivals(Source& source, const Clock& clock) : source_(source), clock_(clock) {}
  ~Arrivals() { source_.stop(); }

  /// Makes the source tell from now on, the first time that it is called; and how often it has told. To be asked before
  /// the claim that finds nothing, so that nothing which comes meanwhile is missed.
  std::uint64_t heard();
  /// Until the source has told more than `heard`, until that time, or until a stop is asked for.
  void wait(std::uint64_t heard, SteadyTime until, const std::stop_token& stop);

 private:
  Source& source_;
  const Clock& clock_;

  std::once_flag started_;
  Mutex mutex_;
  Condition told_;
  std::uint64_t count_ SLUICE_GUARDED_BY(mutex_) = 0;
};

/// How long to wait between two looks at a queue that tells nothing, as many DynamoDB tables are: longer each time.
class LookPace {
 public:
  /// Until when to wait next: no longer than `end`, nor than until something comes due.
  SteadyTime next(SteadyTime now, SteadyTime end, std::optional<Duration> next_due);

 private:
  Duration pause_ = std::chrono::milliseconds(200);
};

}  // namespace sluice::queue
