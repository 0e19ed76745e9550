#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "config/config.hpp"

namespace sluice::work {

/// No message is put off for longer, whatever a handler asks for: far enough for every use, near enough for every
/// store.
inline constexpr Duration kMaxDelay = std::chrono::hours(24 * 366);

/// When a failed message is tried again. A value.
class RetryPolicy {
 public:
  explicit RetryPolicy(const config::RetryConfig& config) : config_(config) {}

  /// The wait after attempt number `attempt` (from 1) failed: grows as configured up to its maximum, then jittered.
  Duration delay(std::uint32_t attempt, Random& random) const;
  /// The longest wait, for messages that are kept although their attempts are used up.
  Duration longest() const { return config_.max; }

  /// True when attempt number `attempt` was the last one. A maximum of 0 means no limit.
  bool used_up(std::uint32_t attempt) const { return config_.max_attempts != 0 && attempt >= config_.max_attempts; }
  /// True when attempt number `attempt` must not begin any more: earlier ones ended without a word, with their process.
  bool exhausted(std::uint32_t attempt) const { return config_.max_attempts != 0 && attempt > config_.max_attempts; }
  std::uint32_t max_attempts() const { return config_.max_attempts; }

 private:
  Duration grown(std::uint32_t attempt) const;

  config::RetryConfig config_;
};

}  // namespace sluice::work
