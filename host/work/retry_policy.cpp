#include "host/work/retry_policy.hpp"

#include <algorithm>

namespace sluice::work {

Duration RetryPolicy::grown(std::uint32_t attempt) const {
  const Duration base = std::max(config_.base, Duration::zero());
  const Duration max = std::max(config_.max, Duration::zero());
  const std::uint32_t failures = std::max(attempt, 1U);
  if (config_.backoff == config::Backoff::constant || base == Duration::zero()) {
    return std::min(base, max);
  }
  if (config_.backoff == config::Backoff::linear) {
    return base > max / failures ? max : base * failures;
  }
  // Compared by shifting the maximum down, so that nothing overflows.
  const std::uint32_t doublings = failures - 1;
  if (doublings >= 62 || base.count() > (max.count() >> doublings)) {
    return max;
  }
  return Duration(base.count() << doublings);
}

Duration RetryPolicy::delay(std::uint32_t attempt, Random& random) const {
  const Duration full = grown(attempt);
  const auto part = [&](Duration span) {
    return Duration(static_cast<Duration::rep>(static_cast<double>(span.count()) * random.unit()));
  };
  switch (config_.jitter) {
    case config::Jitter::none:
      return full;
    case config::Jitter::full:
      return part(full);
    case config::Jitter::equal:
      return full / 2 + part(full - full / 2);
  }
  return full;
}

}  // namespace sluice::work
