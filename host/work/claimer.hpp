#pragma once

#include <cmath>

#include "host/work/account.hpp"

namespace sluice::work {

/// The largest claim, and the most that wait in memory for a worker.
inline constexpr std::size_t kMaxClaim = 1000;
/// What is claimed should start within this time: a message that waits in memory is a lease burning.
inline constexpr Duration kStartHorizon = std::chrono::milliseconds(100);
/// Bodies that wait in memory for a worker, in bytes; free workers are served beyond it.
inline constexpr std::size_t kClaimBytes = 16U << 20U;
/// The most messages that a worker takes at a time, and how long they may take it.
inline constexpr std::size_t kMaxHandful = 64;
inline constexpr Duration kHandfulTime = std::chrono::milliseconds(1);

/// Learns how long handlers take and how large messages are, and says how much to claim and to hand out. Not
/// thread-safe.
class ClaimSizer {
 public:
  struct Pool {
    std::size_t free = 0;    ///< workers without work
    std::size_t active = 0;  ///< free ones and those that come back soon; not those deep in a long attempt
    std::size_t queued = 0;  ///< messages claimed but not handed to a worker
    std::size_t asking = 0;  ///< beside these, whose keys are being asked for: quick workers need others meanwhile
  };

  /// `count` handlers took `total` together.
  void handled(Duration total, std::size_t count);
  void received(std::size_t bytes, std::size_t count);

  /// How much to claim now; 0 while the queue in memory is more than half full, so that claims stay large.
  std::size_t room(const Pool& pool) const;
  /// How many messages to hand to one worker: one at a time when handlers are slow.
  std::size_t handful(std::size_t queued, std::size_t workers) const;
  /// Mean time of a handler; Duration::max() before the first.
  Duration handler_time() const {
    return seconds_ < 0 ? Duration::max()
                        : std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds_));
  }

 private:
  double seconds_ = -1;
  double bytes_ = 0;
};

/// A token bucket that gates claims, so that nothing is claimed only to wait for its turn. Holds a tenth of a second's
/// worth, at least one token. Not thread-safe: a step class that is given the time.
class RateLimiter {
 public:
  /// `rate` messages a second; 0 or less: no limit.
  RateLimiter(double rate, SteadyTime now);

  /// How many messages may be claimed now.
  std::size_t available(SteadyTime now);
  /// Takes tokens for a claim.
  void take(std::size_t count) { tokens_ -= rate_ > 0 ? static_cast<double>(count) : 0; }
  /// Gives back what a claim did not find.
  void refund(std::size_t count) {
    if (rate_ > 0) {
      tokens_ = std::min(capacity_, tokens_ + static_cast<double>(count));
    }
  }
  /// When it is worth looking again after `available` said 0: half a bucket is there, so that high rates claim in
  /// batches instead of message by message.
  SteadyTime next(SteadyTime now) const;

 private:
  void refill(SteadyTime now) {
    if (now > filled_at_) {
      const double seconds = std::chrono::duration<double>(now - filled_at_).count();
      tokens_ = std::min(capacity_, tokens_ + seconds * rate_);
      filled_at_ = now;
    }
  }

  double rate_;
  double capacity_;
  double tokens_;
  SteadyTime filled_at_;
};

/// How long to wait before the next try: doubles from `first` to `last`, with up to a tenth added at random so that
/// hosts started together drift apart. Not thread-safe.
class PollBackoff {
 public:
  PollBackoff(Duration first, Duration last) : first_(first), last_(last), current_(first) {}

  Duration next(Random& random) {
    const Duration wait = current_;
    current_ = std::min(last_, current_ * 2);
    return wait + Duration(static_cast<Duration::rep>(static_cast<double>(wait.count()) * 0.1 * random.unit()));
  }
  /// There was work, or a reason to expect some.
  void reset() { current_ = first_; }

 private:
  Duration first_;
  Duration last_;
  Duration current_;
};

/// Decides when a job claims, and how much of what it has room for. Not thread-safe.
class Claimer {
 public:
  /// What the job could take now.
  struct Room {
    std::size_t messages = 0;
    bool suspects = true;
  };
  struct Order {
    std::size_t count = 0;  ///< 0: nothing to do before `wake`, or before the poller is called
    bool suspects = true;
    SteadyTime wake = SteadyTime::max();

    bool empty() const { return count == 0; }
  };

  struct Settings {
    double rate_limit = 0;                             ///< messages a second; 0: none
    Duration poll_interval = std::chrono::seconds(1);  ///< the longest pause between two looks at an empty queue
  };
  Claimer(const Settings& settings, Random& random, SteadyTime now);

  /// What to claim now. Each order of more than nothing is followed by `claimed` or `failed`.
  Order next(const Room& room, SteadyTime now);
  void claimed(std::size_t count, std::optional<Duration> next_due, SteadyTime now, StepEffects& effects);
  void failed(const Error& error, SteadyTime now, StepEffects& effects);

  /// There may be a message.
  void wake(StepEffects& effects) {
    woken_ = true;
    empty_backoff_.reset();
    effects.poller = effects.poller || !claiming_;
  }
  /// There may be room again.
  void room_made(StepEffects& effects) {
    waits_for_room_ = false;
    effects.poller = true;
  }
  /// A suspect may be taken again.
  void lane_free(StepEffects& effects) {
    if (!order_.suspects) {
      // The last claim passed suspects over.
      order_.suspects = true;
      found_nothing_ = false;
      wake(effects);
    }
  }
  /// An attempt has ended; `gave_back`: with nothing but the wish to have the message later.
  // What is given back is ready at once. Claimed again at once, it would go round as fast as the store allows.
  void attempt_ended(bool gave_back, StepEffects& effects);

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
