#pragma once

#include <optional>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/mutex.hpp"
#include "dynamo/error.hpp"

namespace sluice::dynamo {

/// AWS's current standard mode, with DynamoDB's figures.
struct RetryOptions {
  int max_attempts = 4;
  Duration base = std::chrono::milliseconds(25);
  Duration throttle_base = std::chrono::seconds(1);
  Duration max_backoff = std::chrono::seconds(20);
  Duration retry_after_margin = std::chrono::seconds(5);  ///< how much longer than x-amz-retry-after we may wait
};

/// What limits the retries of a whole client, so that a service in trouble is not hit by a multiple of the load: every
/// retry takes tokens, successes bring them back. Thread-safe; a resource.
class RetryQuota {
 public:
  static constexpr int kCapacity = 500;
  static constexpr int kRetryCost = 14;
  static constexpr int kThrottleCost = 5;
  static constexpr int kUnusedIncome = 1;  ///< for a success at the first attempt

  /// Takes the tokens; false, and nothing taken, when there are too few.
  bool take(int tokens);
  /// Gives tokens back, never beyond the capacity.
  void give(int tokens);

 private:
  Mutex mutex_;
  int available_ SLUICE_GUARDED_BY(mutex_) = kCapacity;
};

/// The attempts of one call, as far as the decision to repeat it needs them. A value.
struct RetryState {
  int attempts = 0;     ///< made so far
  int last_tokens = 0;  ///< taken for the last retry
};

/// Decides whether a failed call is made again, and when. The one place that does. Step functions; thread-safe.
///
/// Repeated are throttles, failed connections, 5xx, time-outs of one attempt and unreadable answers; never what the
/// caller did wrong, never past the deadline, and never a write whose outcome is unknown.
class RetryPolicy {
 public:
  explicit RetryPolicy(RetryOptions options = {}) : options_(options) {}

  /// Whether another attempt could help and do no harm, whatever attempts, quota and deadline say.
  static bool repeatable(const Error& error);

  /// How long to wait before the next attempt; nothing when there must be none. Takes from the quota when there is one.
  /// `random` is uniform in [0, 1). Call it after `state.attempts` counts the failed attempt.
  std::optional<Duration> next_delay(const Error& error, RetryState& state, RetryQuota& quota, double random,
                                     Duration time_left) const;

  /// Gives back what a call took that succeeded in the end.
  static void succeeded(const RetryState& state, RetryQuota& quota);

  /// The wait before attempt `attempts + 1`, without quota and deadline.
  Duration backoff(const Error& error, int attempts, double random) const;

 private:
  RetryOptions options_;
};

}  // namespace sluice::dynamo
