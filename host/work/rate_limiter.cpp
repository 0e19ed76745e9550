#include "host/work/rate_limiter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::work {
namespace {

constexpr double kBucketSeconds = 0.1;
// Rounding of many small refills must not make a whole token look like a little less.
constexpr double kSlack = 1e-6;

}  // namespace

RateLimiter::RateLimiter(double rate, SteadyTime now)
    : rate_(std::isfinite(rate) ? rate : 0),
      capacity_(std::max(1.0, rate_ * kBucketSeconds)),
      tokens_(1),
      filled_at_(now) {}

void RateLimiter::refill(SteadyTime now) {
  if (now > filled_at_) {
    const double seconds = std::chrono::duration<double>(now - filled_at_).count();
    tokens_ = std::min(capacity_, tokens_ + seconds * rate_);
    filled_at_ = now;
  }
}

std::size_t RateLimiter::available(SteadyTime now) {
  if (rate_ <= 0) {
    return std::numeric_limits<std::size_t>::max();
  }
  refill(now);
  return tokens_ + kSlack >= 1 ? static_cast<std::size_t>(tokens_ + kSlack) : 0;
}

void RateLimiter::take(std::size_t count) { tokens_ -= rate_ > 0 ? static_cast<double>(count) : 0; }

void RateLimiter::refund(std::size_t count) {
  if (rate_ > 0) {
    tokens_ = std::min(capacity_, tokens_ + static_cast<double>(count));
  }
}

SteadyTime RateLimiter::next(SteadyTime now) const {
  if (rate_ <= 0) {
    return now;
  }
  const double wanted = std::max(1.0, std::floor(capacity_ / 2));
  const double seconds = std::clamp((wanted - tokens_) / rate_, 0.0, 3600.0);
  return std::max(now, filled_at_ + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)) +
                           std::chrono::microseconds(1));
}

}  // namespace sluice::work
