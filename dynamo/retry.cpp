#include "dynamo/retry.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace sluice::dynamo {

bool RetryQuota::take(int tokens) {
  const MutexLock lock(mutex_);
  if (available_ < tokens) {
    return false;
  }
  available_ -= tokens;
  return true;
}

void RetryQuota::give(int tokens) {
  const MutexLock lock(mutex_);
  available_ = std::min(kCapacity, available_ + tokens);
}

bool RetryPolicy::repeatable(const Error& error) {
  constexpr std::array kRepeated{ErrorKind::transport, ErrorKind::timeout, ErrorKind::throttled, ErrorKind::server,
                                 ErrorKind::malformed_response};
  return !error.outcome_unknown && std::find(kRepeated.begin(), kRepeated.end(), error.kind) != kRepeated.end();
}

Duration RetryPolicy::backoff(const Error& error, int attempts, double random) const {
  const Duration base = error.kind == ErrorKind::throttled ? options_.throttle_base : options_.base;
  const double full = std::ldexp(static_cast<double>(base.count()), std::max(0, attempts - 1));
  const double most = static_cast<double>(options_.max_backoff.count());
  const Duration wait(static_cast<Duration::rep>(random * std::min(full, most)));
  if (error.retry_after_ms < 0) {
    return wait;
  }
  // The service knows best how long it needs, but cannot make us wait much longer than we would by ourselves.
  const Duration asked = std::chrono::milliseconds(error.retry_after_ms);
  return std::clamp(asked, wait, wait + options_.retry_after_margin);
}

std::optional<Duration> RetryPolicy::next_delay(const Error& error, RetryState& state, RetryQuota& quota, double random,
                                                Duration time_left) const {
  if (!repeatable(error) || state.attempts >= options_.max_attempts) {
    return std::nullopt;
  }
  const Duration wait = backoff(error, state.attempts, random);
  if (wait >= time_left) {
    return std::nullopt;
  }
  const int tokens = error.kind == ErrorKind::throttled ? RetryQuota::kThrottleCost : RetryQuota::kRetryCost;
  if (!quota.take(tokens)) {
    return std::nullopt;
  }
  state.last_tokens = tokens;
  return wait;
}

void RetryPolicy::succeeded(const RetryState& state, RetryQuota& quota) {
  quota.give(state.last_tokens > 0 ? state.last_tokens : RetryQuota::kUnusedIncome);
}

}  // namespace sluice::dynamo
