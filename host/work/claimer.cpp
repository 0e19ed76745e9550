#include "host/work/claimer.hpp"

#include "base/assert.hpp"

namespace sluice::work {

namespace {

// Weight of one observation in the moving averages.
constexpr double kWeight = 0.1;

double blend(double mean, double value, std::size_t count) {
  const double weight = std::min(0.5, kWeight * static_cast<double>(count));
  return mean + weight * (value - mean);
}

constexpr double kBucketSeconds = 0.1;
// Rounding of many small refills must not make a whole token look like a little less.
constexpr double kSlack = 1e-6;

constexpr Duration kFirstPoll = std::chrono::milliseconds(10);
constexpr Duration kLastPause = std::chrono::seconds(1);
constexpr Duration kFirstDue = std::chrono::milliseconds(1);
constexpr Duration kFirstRetry = std::chrono::milliseconds(100);
constexpr Duration kLastRetry = std::chrono::seconds(10);
// So many messages given back in a row are worth a line in the log.
constexpr std::uint64_t kWorthALine = 100;

}  // namespace

void ClaimSizer::handled(Duration total, std::size_t count) {
  if (count == 0) {
    return;
  }
  const double mean = std::max(1e-9, std::chrono::duration<double>(total).count() / static_cast<double>(count));
  seconds_ = seconds_ < 0 ? mean : blend(seconds_, mean, count);
}

void ClaimSizer::received(std::size_t bytes, std::size_t count) {
  if (count > 0) {
    bytes_ = blend(bytes_, static_cast<double>(bytes) / static_cast<double>(count), count);
  }
}

std::size_t ClaimSizer::room(const Pool& pool) const {
  double ahead = 0;
  const double horizon = std::chrono::duration<double>(kStartHorizon).count();
  if (seconds_ > 0 && seconds_ < horizon) {
    ahead = static_cast<double>(pool.active) * std::floor(horizon / seconds_);
  }
  if (bytes_ >= 1) {
    ahead = std::min(ahead, std::floor(static_cast<double>(kClaimBytes) / bytes_));
  }
  const double wanted = static_cast<double>(pool.free) + ahead - static_cast<double>(pool.asking);
  const auto target = static_cast<std::size_t>(std::clamp(wanted, 0.0, static_cast<double>(kMaxClaim)));
  if (pool.queued > target / 2 || pool.queued >= target) {
    return 0;
  }
  return target - pool.queued;
}

std::size_t ClaimSizer::handful(std::size_t queued, std::size_t workers) const {
  if (seconds_ <= 0 || queued == 0) {
    return std::min<std::size_t>(queued, 1);
  }
  const double fits = std::chrono::duration<double>(kHandfulTime).count() / seconds_;
  const std::size_t share = (queued + workers - 1) / std::max<std::size_t>(workers, 1);
  const auto most = static_cast<std::size_t>(std::clamp(fits, 1.0, static_cast<double>(kMaxHandful)));
  return std::max<std::size_t>(1, std::min(most, share));
}

RateLimiter::RateLimiter(double rate, SteadyTime now)
    : rate_(std::isfinite(rate) ? rate : 0),
      capacity_(std::max(1.0, rate_ * kBucketSeconds)),
      tokens_(1),
      filled_at_(now) {}

std::size_t RateLimiter::available(SteadyTime now) {
  if (rate_ <= 0) {
    return std::numeric_limits<std::size_t>::max();
  }
  refill(now);
  return tokens_ + kSlack >= 1 ? static_cast<std::size_t>(tokens_ + kSlack) : 0;
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

Claimer::Claimer(const Settings& settings, Random& random, SteadyTime now)
    : random_(random),
      limiter_(settings.rate_limit, now),
      empty_backoff_(kFirstPoll, std::max(kFirstPoll, settings.poll_interval)),
      due_backoff_(kFirstDue, kLastPause),
      failure_backoff_(kFirstRetry, kLastRetry),
      given_back_backoff_(kFirstPoll, kLastPause),
      poll_at_(now) {}

Claimer::Order Claimer::next(const Room& room, SteadyTime now) {
  SLUICE_ASSERT(!claiming_);
  // A wake cuts the wait for new messages short, not the back-off from a store that fails or from a handler that gives
  // everything back, whose own releases would wake it.
  if (now < poll_at_ && (!woken_ || failures_.going_on() || given_back_ > 0)) {
    return {0, true, poll_at_};
  }
  waits_for_room_ = room.messages == 0;
  if (room.messages == 0) {
    return {};
  }
  const std::size_t count = std::min(room.messages, limiter_.available(now));
  if (count == 0) {
    return {0, true, limiter_.next(now)};
  }
  limiter_.take(count);
  claiming_ = true;
  woken_ = false;
  order_ = {count, room.suspects, now};
  return order_;
}

void Claimer::claimed(std::size_t count, std::optional<Duration> next_due, SteadyTime now, StepEffects& effects) {
  SLUICE_ASSERT(claiming_);
  claiming_ = false;
  limiter_.refund(order_.count - std::min(order_.count, count));
  if (failures_.succeeded("claims work again", effects)) {
    failure_backoff_.reset();
  }
  found_nothing_ = count == 0 && order_.suspects;
  if (count > 0) {
    empty_backoff_.reset();
    due_backoff_.reset();
    poll_at_ = given_back_ > 0 ? now + given_back_backoff_.next(random_) : now;
    return;
  }
  Duration wait = empty_backoff_.next(random_);
  if (next_due && *next_due < wait) {
    // Exactly then; but what is said to be due and is not there must not be asked for without a pause.
    wait = std::max(*next_due, std::min(wait, due_backoff_.next(random_)));
  }
  poll_at_ = now + wait;
}

void Claimer::failed(const Error& error, SteadyTime now, StepEffects& effects) {
  SLUICE_ASSERT(claiming_);
  claiming_ = false;
  found_nothing_ = false;
  limiter_.refund(order_.count);
  poll_at_ = now + failure_backoff_.next(random_);
  ++effects.claim_failed;
  failures_.failed(error, "cannot claim messages, trying again", now, effects);
}

void Claimer::attempt_ended(bool gave_back, StepEffects& effects) {
  if (!gave_back) {
    given_back_ = 0;
    given_back_backoff_.reset();
  } else if (++given_back_ == kWorthALine) {
    effects.line(observe::LogLevel::warn, "the handler gives back every message; claiming more slowly");
  }
}

}  // namespace sluice::work
