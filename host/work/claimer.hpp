#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "host/queue/source.hpp"
#include "host/work/failure_run.hpp"
#include "host/work/poll_backoff.hpp"
#include "host/work/rate_limiter.hpp"
#include "host/work/step_effects.hpp"

namespace sluice::work {

/// Decides when a job claims, and how much of what it has room for. Not thread-safe.
class Claimer {
 public:
  /// What the job could take now.
  struct Room {
    std::size_t messages = 0;
    bool suspects = true;
  };
  struct Order {
    std::size_t count = 0;  ///< 0: nothing to do before `wake`, or before a note wakes the poller
    bool suspects = true;
    SteadyTime wake = SteadyTime::max();
  };

  struct Settings {
    double rate_limit = 0;                             ///< messages a second; 0: none
    Duration poll_interval = std::chrono::seconds(1);  ///< the longest pause between two looks at an empty queue
  };
  Claimer(const Settings& settings, Random& random, SteadyTime now);

  /// What to claim now. Each order of more than nothing is followed by `claimed` or `failed`.
  Order next(const Room& room, SteadyTime now);
  void claimed(std::size_t count, std::optional<Duration> next_due, SteadyTime now, StepEffects& notes);
  void failed(const Error& error, SteadyTime now, StepEffects& notes);

  /// There may be a message.
  void wake(StepEffects& notes);
  /// There may be room again.
  void room_made(StepEffects& notes);
  /// A suspect may be taken again.
  void lane_free(StepEffects& notes);
  /// An attempt has ended; `gave_back`: with nothing but the wish to have the message later.
  void attempt_ended(bool gave_back, StepEffects& notes);

  /// Why nothing can be claimed, where the role may not.
  std::optional<Error> denial() const { return failures_.denial(); }
  /// Why the last claim has failed, while none goes well.
  const std::optional<Error>& trouble() const { return failures_.trouble(); }
  /// None has gone well for long.
  bool cut_off(SteadyTime now) const { return failures_.lasts(now); }
  bool waits_for_room() const { return waits_for_room_; }
  bool under_way() const { return claiming_; }
  /// The last claim, begun after the last wake, found nothing due.
  bool found_nothing() const { return found_nothing_ && !claiming_ && !woken_; }

 private:
  // Fixed after construction.
  Random& random_;

  RateLimiter limiter_;
  PollBackoff empty_backoff_;
  PollBackoff due_backoff_;  ///< what the source says is due, and is not there
  PollBackoff failure_backoff_;
  PollBackoff given_back_backoff_;
  std::uint64_t given_back_ = 0;  ///< in a row: a handler that cannot work now
  SteadyTime poll_at_;
  Order order_;
  bool claiming_ = false;
  bool woken_ = false;
  bool waits_for_room_ = false;
  bool found_nothing_ = false;
  FailureRun failures_;
};

}  // namespace sluice::work
