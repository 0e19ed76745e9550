#include <gtest/gtest.h>

#include <map>
#include <string>

#include "host/queue/wake/datagram.hpp"

namespace sluice::queue::wake {
namespace {

using namespace std::chrono_literals;

const std::string kRingSecret = "0123456789abcdef";
const WallTime kWall{1'800'000'000s};

class RingFilterTest : public ::testing::Test {
 protected:
  static std::map<std::string, RingFilter::WallClock> queues() {
    const auto clock = [] { return kWall; };
    return {{"orders", clock}, {"mails", clock}};
  }
  void SetUp() override {
    open_.know(queues());
    closed_.know(queues());
  }

  RingResult judge(RingFilter& filter, const Ring& ring, const std::string& secret, SteadyTime now = {}) {
    return filter.judge(write_datagram(ring, secret), now).result;
  }
  /// What so many new datagrams in this time bring about, all at even distances.
  std::map<RingResult, int> flood(RingFilter& filter, const std::string& secret, int count, Duration span) {
    std::map<RingResult, int> results;
    for (int i = 0; i < count; ++i) {
      const SteadyTime now = SteadyTime(i * span / count);
      ++results[judge(filter, {"orders", kWall, ++nonce_}, secret, now)];
      looks_ += static_cast<int>(filter.take_due(now).size());
    }
    return results;
  }

  RingFilter open_{""};
  RingFilter closed_{kRingSecret};
  std::uint64_t nonce_ = 0;
  int looks_ = 0;  ///< that came later
};

TEST_F(RingFilterTest, ADatagramWakesTheQueueThatItNames) {
  const auto judgement = open_.judge(write_datagram({"orders", kWall, 1}, ""), {});
  EXPECT_EQ(judgement.result, RingResult::rung);
  EXPECT_EQ(judgement.queue, "orders");
}

TEST_F(RingFilterTest, WhatIsNotOursOrForOthersWakesNobody) {
  EXPECT_EQ(open_.judge("hello", {}).result, RingResult::malformed);
  EXPECT_EQ(open_.judge(std::string(1'024, '\0'), {}).result, RingResult::malformed);
  EXPECT_EQ(judge(open_, {"orders/dlq", kWall, 1}, ""), RingResult::unknown_queue);
  open_.know({});
  EXPECT_EQ(judge(open_, {"orders", kWall, 2}, ""), RingResult::unknown_queue);
}

TEST_F(RingFilterTest, WithASecretOnlyThoseWhoHaveItWake) {
  EXPECT_EQ(judge(closed_, {"orders", kWall, 1}, ""), RingResult::without_signature);
  EXPECT_EQ(judge(closed_, {"orders", kWall, 2}, "another secret, as long"), RingResult::forged);
  EXPECT_EQ(judge(closed_, {"orders", kWall, 3}, kRingSecret), RingResult::rung);
  EXPECT_EQ(judge(open_, {"orders", kWall, 4}, kRingSecret), RingResult::rung)
      << "a host without one takes everybody's";
}

TEST_F(RingFilterTest, ADatagramThatWasHeardIsWorthNothingAgain) {
  const Ring ring{"orders", kWall, 7};
  EXPECT_EQ(judge(closed_, ring, kRingSecret), RingResult::rung);
  EXPECT_EQ(judge(closed_, ring, kRingSecret), RingResult::replayed);
  EXPECT_EQ(judge(closed_, {"orders", kWall - RingFilter::kTolerance, 8}, kRingSecret), RingResult::rung);
  EXPECT_EQ(judge(closed_, {"orders", kWall - RingFilter::kTolerance - 1ms, 9}, kRingSecret), RingResult::stale);
  EXPECT_EQ(judge(closed_, {"orders", kWall + RingFilter::kTolerance + 1ms, 10}, kRingSecret), RingResult::stale);
}

TEST_F(RingFilterTest, WhatIsForgedUsesUpNothing) {
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_EQ(judge(closed_, {"orders", kWall, 1}, "a secret of somebody's"), RingResult::forged);
  }
  EXPECT_EQ(judge(closed_, {"orders", kWall, 1}, kRingSecret), RingResult::rung);
}

TEST_F(RingFilterTest, AFloodCostsTenLooksASecondAndQueue) {
  const auto results = flood(open_, "", 10'000, 10s);
  const int looks = results.at(RingResult::rung) + looks_;
  EXPECT_EQ(results.at(RingResult::rung) + results.at(RingResult::limited), 10'000);
  EXPECT_GE(looks, 100);
  EXPECT_LE(looks, 100 + static_cast<int>(RingFilter::kLooks)) << "the first second's come at once";
  EXPECT_EQ(judge(open_, {"mails", kWall, 1}, "", SteadyTime(10s)), RingResult::rung) << "others are not held up";
}

TEST_F(RingFilterTest, WhoHasTheSecretMayRingMoreOften) {
  const auto results = flood(closed_, kRingSecret, 10'000, 10s);
  const int looks = results.at(RingResult::rung) + looks_;
  EXPECT_GE(looks, 1'000);
  EXPECT_LE(looks, 1'000 + static_cast<int>(RingFilter::kSignedLooks));
}

TEST_F(RingFilterTest, WhatWasLimitedIsLookedForAsSoonAsItMay) {
  while (judge(open_, {"orders", kWall, ++nonce_}, "") == RingResult::rung) {
  }
  EXPECT_TRUE(open_.take_due({}).empty());
  const SteadyTime due = open_.next_due();
  EXPECT_GT(due, SteadyTime(90ms));
  EXPECT_LE(due, SteadyTime(101ms));
  EXPECT_EQ(open_.take_due(due), std::vector<std::string>{"orders"});
  EXPECT_TRUE(open_.take_due(due).empty()) << "once for all of them";
  EXPECT_EQ(open_.next_due(), SteadyTime::max());
}

TEST_F(RingFilterTest, AChangeOfJobsForgetsNothingOfTheQueuesThatStay) {
  while (judge(open_, {"orders", kWall, ++nonce_}, "") == RingResult::rung) {
  }
  open_.know(queues());
  EXPECT_EQ(judge(open_, {"orders", kWall, ++nonce_}, ""), RingResult::limited);
}

TEST_F(RingFilterTest, WhatIsRememberedIsBounded) {
  const Ring first{"orders", kWall, ++nonce_};
  judge(closed_, first, kRingSecret);
  for (std::size_t i = 0; i < RingFilter::kRemembered; ++i) {
    judge(closed_, {"mails", kWall, ++nonce_}, kRingSecret);
  }
  EXPECT_EQ(judge(closed_, first, kRingSecret, SteadyTime(1s)), RingResult::rung);
}

TEST(RingResults, HaveTheNamesOfTheMetric) {
  EXPECT_EQ(to_string(RingResult::rung), "rung");
  EXPECT_EQ(to_string(RingResult::without_signature), "unsigned");
  EXPECT_EQ(to_string(RingResult::replayed), "replayed");
}

}  // namespace
}  // namespace sluice::queue::wake
