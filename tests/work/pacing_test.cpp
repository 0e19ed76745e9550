// The small step classes that say when and how much to claim.
#include <gtest/gtest.h>

#include "host/work/dispatcher.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""us;
using std::chrono_literals::operator""ns;

constexpr SteadyTime kStart = SteadyTime(std::chrono::hours(1));

TEST(RateLimiter, WithoutARateNothingIsLimited) {
  RateLimiter limiter(0, false, kStart);
  EXPECT_GT(limiter.available(kStart), 1'000'000U);
  limiter.take(1'000'000);
  EXPECT_GT(limiter.available(kStart), 1'000'000U);
  EXPECT_EQ(limiter.next(kStart), kStart);
}

// Claims whatever is allowed, waiting as told; counts what came in a span.
std::size_t spend(double rate, Duration span) {
  RateLimiter limiter(rate, false, kStart);
  std::size_t total = 0;
  int steps = 0;
  for (SteadyTime now = kStart; now < kStart + span;) {
    const std::size_t some = limiter.available(now);
    if (some > 0) {
      limiter.take(some);
      total += some;
      continue;
    }
    const SteadyTime next = limiter.next(now);
    EXPECT_GT(next, now) << "a limiter that makes its caller spin";
    if (next <= now || ++steps > 1'000'000) {
      return total;
    }
    now = next;
  }
  return total;
}

TEST(RateLimiter, KeepsTheRateOverTime) {
  EXPECT_NEAR(static_cast<double>(spend(100, 60s)), 6000, 12);
  EXPECT_NEAR(static_cast<double>(spend(10'000, 10s)), 100'000, 1'100);
  EXPECT_NEAR(static_cast<double>(spend(0.5, 100s)), 50, 2);
  EXPECT_NEAR(static_cast<double>(spend(1, 100s)), 100, 2);
  EXPECT_NEAR(static_cast<double>(spend(3.7, 1000s)), 3700, 3);
}

TEST(RateLimiter, ALongPauseDoesNotSaveUpABurst) {
  RateLimiter limiter(100, false, kStart);
  EXPECT_EQ(limiter.available(kStart + 1h), 10U);
}

TEST(RateLimiter, RefundGivesBackWhatWasNotFound) {
  RateLimiter limiter(10, false, kStart);
  ASSERT_EQ(limiter.available(kStart), 1U);
  limiter.take(1);
  EXPECT_EQ(limiter.available(kStart), 0U);
  limiter.refund(1);
  EXPECT_EQ(limiter.available(kStart), 1U);
}

TEST(RateLimiter, WhatIsGivenBackWithoutAPartIsNoToken) {
  RateLimiter limiter(10, true, kStart);
  limiter.share({.rate = 10, .credit = 1, .until = kStart + 6s}, kStart);
  ASSERT_EQ(limiter.available(kStart), 1U);
  limiter.take(1);
  limiter.share({.rate = 0, .credit = 0, .until = kStart + 6s}, kStart);
  limiter.refund(1);
  EXPECT_EQ(limiter.available(kStart), 0U);
  limiter.share({.rate = 10, .credit = 0, .until = kStart + 6s}, kStart);
  EXPECT_EQ(limiter.available(kStart), 0U) << "another host may have claimed by it";
}

TEST(RateLimiter, TimeThatGoesBackIsNoTimeAtAll) {
  RateLimiter limiter(10, false, kStart);
  limiter.take(1);
  EXPECT_EQ(limiter.available(kStart - 1h), 0U);
  EXPECT_EQ(limiter.available(kStart + 100ms), 1U);
}

TEST(RateLimiter, HighRatesClaimInBatches) {
  RateLimiter limiter(10'000, false, kStart);
  limiter.take(limiter.available(kStart));
  const SteadyTime next = limiter.next(kStart);
  EXPECT_GE(limiter.available(next), 400U);
}

TEST(PollBackoff, DoublesFromFirstToLastWithALittleJitter) {
  SeededRandom random(3);
  PollBackoff backoff(10ms, 1s);
  Duration expected = 10ms;
  for (int i = 0; i < 20; ++i) {
    const Duration wait = backoff.next(random);
    EXPECT_GE(wait, expected);
    EXPECT_LE(wait, expected + expected / 10);
    expected = std::min<Duration>(1s, expected * 2);
  }
  backoff.reset();
  EXPECT_LE(backoff.next(random), 11ms);
}

/// How long the claimer waits after the last of 20 claims in a row that have failed so.
Duration last_pause(ErrorCode code) {
  SeededRandom random(3);
  Claimer claimer({}, random, kStart);
  StepEffects effects;
  SteadyTime now = kStart;
  Duration pause{};
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(claimer.next({.messages = 1}, now).empty());
    claimer.failed(Error(code, "no"), now, effects);
    claimer.wake(effects);
    pause = claimer.next({.messages = 1}, now).wake - now;
    now += pause;
  }
  return pause;
}

TEST(Claimer, AsksAStoreThatCannotBeReachedOnceASecondAndOthersLessOften) {
  EXPECT_EQ(last_pause(ErrorCode::unavailable), 1s);
  EXPECT_GE(last_pause(ErrorCode::throttled), 10s);
  EXPECT_GE(last_pause(ErrorCode::denied), 10s);
}

TEST(ClaimSizer, BeforeItKnowsAnythingItServesFreeWorkers) {
  const ClaimSizer sizer;
  EXPECT_EQ(sizer.room({.free = 8, .active = 8, .queued = 0}), 8U);
  EXPECT_EQ(sizer.room({.free = 0, .active = 0, .queued = 0}), 0U);
  EXPECT_EQ(sizer.handful(8, 8), 1U);
}

TEST(ClaimSizer, FastHandlersGetLargeClaims) {
  ClaimSizer sizer;
  sizer.handled(1us * 100, 100);
  EXPECT_EQ(sizer.room({.free = 16, .active = 16, .queued = 0}), kMaxClaim);
  EXPECT_EQ(sizer.handful(1000, 2), kMaxHandful);
  EXPECT_EQ(sizer.handful(32, 16), 2U) << "a small queue is shared";
}

TEST(ClaimSizer, QuickWorkersAreServedWhileKeysAreAskedForAndSlowOnesAreNotServedTwice) {
  ClaimSizer quick;
  quick.handled(10us, 1);
  EXPECT_EQ(quick.room({.free = 0, .active = 8, .queued = 0, .asking = 1000}), 1000U);
  EXPECT_EQ(quick.room({.free = 0, .active = 8, .queued = 600, .asking = 1000}), 0U);
  ClaimSizer slow;
  slow.handled(1s, 1);
  EXPECT_EQ(slow.room({.free = 8, .active = 8, .queued = 0, .asking = 3}), 5U);
  EXPECT_EQ(slow.room({.free = 8, .active = 8, .queued = 0, .asking = 8}), 0U);
  EXPECT_EQ(slow.room({.free = 8, .active = 8, .queued = 0, .asking = 20}), 0U);
}

TEST(ClaimSizer, SlowHandlersGetOnlyTheirFreeWorkers) {
  ClaimSizer sizer;
  sizer.handled(2s, 1);
  EXPECT_EQ(sizer.room({.free = 3, .active = 3, .queued = 0}), 3U);
  EXPECT_EQ(sizer.room({.free = 0, .active = 8, .queued = 0}), 0U);
  EXPECT_EQ(sizer.room({.free = 3, .active = 8, .queued = 3}), 0U);
  EXPECT_EQ(sizer.handful(1000, 8), 1U);
}

TEST(ClaimSizer, ClaimsWhatStartsWithinTheHorizonAndNoMore) {
  ClaimSizer sizer;
  sizer.handled(10ms, 1);
  // Each of four workers starts ten in 100 ms.
  EXPECT_EQ(sizer.room({.free = 4, .active = 4, .queued = 0}), 44U);
  // The same pool, one worker of which is not deep in a long attempt.
  EXPECT_EQ(sizer.room({.free = 0, .active = 1, .queued = 0}), 10U);
}

TEST(ClaimSizer, WaitsUntilTheQueueIsHalfEmpty) {
  ClaimSizer sizer;
  sizer.handled(1us, 1);
  EXPECT_EQ(sizer.room({.free = 0, .active = 16, .queued = 501}), 0U);
  EXPECT_EQ(sizer.room({.free = 0, .active = 16, .queued = 500}), 500U);
}

TEST(ClaimSizer, LearnsAgainWhenAHandlerTurnsSlowAndFast) {
  ClaimSizer sizer;
  sizer.handled(1us * 64, 64);
  for (int i = 0; i < 3; ++i) {
    sizer.handled(10s, 1);
  }
  EXPECT_EQ(sizer.room({.free = 2, .active = 2, .queued = 0}), 2U);
  for (int i = 0; i < 100; ++i) {
    sizer.handled(1us, 1);
  }
  EXPECT_GT(sizer.room({.free = 2, .active = 2, .queued = 0}), 100U);
}

TEST(ClaimSizer, LargeBodiesBoundWhatWaitsInMemory) {
  ClaimSizer sizer;
  sizer.handled(1us, 1);
  for (int i = 0; i < 20; ++i) {
    sizer.received(400U << 10U, 1);
  }
  const std::size_t room = sizer.room({.free = 4, .active = 4, .queued = 0});
  EXPECT_LE(room * (400U << 10U), 2 * kClaimBytes);
  EXPECT_GE(room, 4U) << "free workers are served whatever the size";
}

TEST(ClaimSizer, HandlersThatTakeNoTimeAtAllAreFast) {
  ClaimSizer sizer;
  sizer.handled(0ns, 10);
  EXPECT_EQ(sizer.room({.free = 1, .active = 1, .queued = 0}), kMaxClaim);
}

}  // namespace
}  // namespace sluice::work
