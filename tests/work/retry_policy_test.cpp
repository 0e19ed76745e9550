#include <gtest/gtest.h>

#include <limits>

#include "host/work/in_flight_table.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""min;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

config::RetryConfig config(config::Backoff backoff, config::Jitter jitter = config::Jitter::none) {
  return {.max_attempts = 5, .backoff = backoff, .base = 1s, .max = 15min, .jitter = jitter};
}

TEST(RetryPolicy, GrowsAsConfigured) {
  SeededRandom random(1);
  const RetryPolicy constant(config(config::Backoff::constant));
  const RetryPolicy linear(config(config::Backoff::linear));
  const RetryPolicy exponential(config(config::Backoff::exponential));
  for (std::uint32_t attempt = 1; attempt <= 8; ++attempt) {
    EXPECT_EQ(constant.delay(attempt, random), 1s);
    EXPECT_EQ(linear.delay(attempt, random), attempt * 1s);
    EXPECT_EQ(exponential.delay(attempt, random), (1 << (attempt - 1)) * 1s);
  }
}

TEST(RetryPolicy, NeverPassesTheMaximumNorOverflows) {
  SeededRandom random(1);
  for (const auto backoff : {config::Backoff::linear, config::Backoff::exponential}) {
    const RetryPolicy policy(config(backoff));
    for (const std::uint32_t attempt : {1'000U, 65'536U, std::numeric_limits<std::uint32_t>::max()}) {
      EXPECT_EQ(policy.delay(attempt, random), 15min) << attempt;
    }
  }
}

TEST(RetryPolicy, HugeMaximumDoesNotOverflowEither) {
  SeededRandom random(1);
  auto huge = config(config::Backoff::exponential);
  huge.max = Duration::max();
  const RetryPolicy policy(huge);
  Duration last{};
  for (std::uint32_t attempt = 1; attempt < 200; ++attempt) {
    const Duration delay = policy.delay(attempt, random);
    EXPECT_GE(delay, last) << attempt;
    last = delay;
  }
  EXPECT_EQ(last, Duration::max());
}

TEST(RetryPolicy, AttemptZeroCountsAsTheFirst) {
  SeededRandom random(1);
  EXPECT_EQ(RetryPolicy(config(config::Backoff::exponential)).delay(0, random), 1s);
}

TEST(RetryPolicy, BaseAboveTheMaximumIsCut) {
  SeededRandom random(1);
  auto cut = config(config::Backoff::constant);
  cut.max = 100ms;
  EXPECT_EQ(RetryPolicy(cut).delay(1, random), 100ms);
}

TEST(RetryPolicy, FullJitterSpreadsOverTheWholeSpan) {
  SeededRandom random(7);
  const RetryPolicy policy(config(config::Backoff::constant, config::Jitter::full));
  Duration least = Duration::max();
  Duration most{};
  for (int i = 0; i < 2000; ++i) {
    const Duration delay = policy.delay(1, random);
    least = std::min(least, delay);
    most = std::max(most, delay);
  }
  EXPECT_GE(least, 0s);
  EXPECT_LT(least, 10ms);
  EXPECT_GT(most, 990ms);
  EXPECT_LE(most, 1s);
}

TEST(RetryPolicy, EqualJitterKeepsHalf) {
  SeededRandom random(7);
  const RetryPolicy policy(config(config::Backoff::constant, config::Jitter::equal));
  for (int i = 0; i < 2000; ++i) {
    const Duration delay = policy.delay(1, random);
    EXPECT_GE(delay, 500ms);
    EXPECT_LE(delay, 1s);
  }
}

TEST(RetryPolicy, KnowsTheLastAttemptAndTheOneTooMany) {
  const RetryPolicy policy(config(config::Backoff::constant));
  EXPECT_FALSE(policy.used_up(4));
  EXPECT_TRUE(policy.used_up(5));
  EXPECT_FALSE(policy.exhausted(5));
  EXPECT_TRUE(policy.exhausted(6));
  auto unlimited = config(config::Backoff::constant);
  unlimited.max_attempts = 0;
  EXPECT_FALSE(RetryPolicy(unlimited).used_up(1'000'000));
  EXPECT_FALSE(RetryPolicy(unlimited).exhausted(1'000'000));
}

}  // namespace
}  // namespace sluice::work
