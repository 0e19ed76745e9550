#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "host/queue/wake/ringer.hpp"

namespace sluice::queue::wake {
namespace {

using namespace std::chrono_literals;
using Call = RingPlan::Call;

const WallTime kPlanWall{1'800'000'000s};

Announcement host(const std::string& name, const std::string& address, std::vector<std::string> queues = {"orders"}) {
  return {.host = name, .address = address, .queues = std::move(queues), .at = kPlanWall, .every = 60s};
}

class RingPlanTest : public ::testing::Test {
 protected:
  RingPlan::Order next() { return plan_.next(now_, kPlanWall); }
  bool rang(const std::string& queue = "orders") { return plan_.rang(queue, now_, kPlanWall); }
  /// As a producer has it that has been sending.
  void know(const std::vector<Announcement>& hosts) {
    rang();
    ASSERT_TRUE(next().read);
    plan_.read(hosts, now_);
    next();
    now_ += 1s;
  }

  SeededRandom random_{1};
  RingPlan plan_{random_};
  SteadyTime now_{100s};
};

TEST_F(RingPlanTest, NothingIsReadBeforeSomethingIsPut) {
  const auto order = next();
  EXPECT_FALSE(order.read);
  EXPECT_TRUE(order.calls.empty());
  EXPECT_EQ(order.wake, SteadyTime::max());
}

TEST_F(RingPlanTest, TheFirstRingReadsAndThenRings) {
  EXPECT_TRUE(rang());
  const auto order = next();
  EXPECT_TRUE(order.read);
  EXPECT_TRUE(order.calls.empty());
  plan_.read({host("a", "10.0.0.1:1"), host("b", "10.0.0.2:1", {"mails"})}, now_);
  const auto after = next();
  EXPECT_FALSE(after.read);
  EXPECT_EQ(after.calls, (std::vector<Call>{{"10.0.0.1:1", "orders"}}));
  EXPECT_TRUE(next().calls.empty());
}

TEST_F(RingPlanTest, OfManySecondsOfSendingOneReadingIsMadeEachTen) {
  int reads = 0;
  for (; now_ < SteadyTime(200s); now_ += 1ms) {
    rang();
    if (next().read) {
      ++reads;
      plan_.read({host("a", "10.0.0.1:1")}, now_);
    }
  }
  EXPECT_EQ(reads, 10);
}

TEST_F(RingPlanTest, ManyRingsAreOneDatagramAHostAndGap) {
  know({host("a", "10.0.0.1:1"), host("b", "10.0.0.2:1")});
  std::size_t calls = 0;
  for (const SteadyTime end = now_ + 3s; now_ < end; now_ += 100us) {
    EXPECT_TRUE(rang());
    calls += next().calls.size();
  }
  EXPECT_LE(calls, 2U * (3s / RingPlan::kGap + 1));
  EXPECT_GE(calls, 2U * (3s / RingPlan::kGap) - 2);
}

TEST_F(RingPlanTest, WhatIsPutWithinTheGapIsRungForAtItsEnd) {
  know({host("a", "10.0.0.1:1")});
  rang();
  EXPECT_EQ(next().calls.size(), 1U);
  now_ += 1ms;
  rang();
  const auto waits = next();
  EXPECT_TRUE(waits.calls.empty());
  EXPECT_EQ(waits.wake, now_ + 2ms);
  now_ = waits.wake;
  EXPECT_EQ(next().calls.size(), 1U);
}

TEST_F(RingPlanTest, QueuesDoNotWaitForEachOther) {
  know({host("a", "10.0.0.1:1", {"orders", "mails"})});
  rang("orders");
  EXPECT_EQ(next().calls, (std::vector<Call>{{"10.0.0.1:1", "orders"}}));
  rang("mails");
  EXPECT_EQ(next().calls, (std::vector<Call>{{"10.0.0.1:1", "mails"}}));
}

TEST_F(RingPlanTest, WhoIsKnownIsRungBeforeTheNextReadingAndWhoIsNewAfterIt) {
  know({host("a", "10.0.0.1:1")});
  now_ += 10s;
  rang();
  const auto order = next();
  EXPECT_TRUE(order.read);
  EXPECT_EQ(order.calls, (std::vector<Call>{{"10.0.0.1:1", "orders"}}));
  plan_.read({host("a", "10.0.0.1:1"), host("b", "10.0.0.2:1")}, now_);
  EXPECT_EQ(next().calls, (std::vector<Call>{{"10.0.0.2:1", "orders"}}));
  EXPECT_TRUE(next().calls.empty());
}

TEST_F(RingPlanTest, WhatIsPutWhileItIsReadIsRungForToo) {
  know({host("a", "10.0.0.1:1")});
  now_ += 10s;
  rang();
  EXPECT_TRUE(next().read);
  now_ += 5ms;
  EXPECT_TRUE(rang());
  plan_.read({host("a", "10.0.0.1:1")}, now_);
  EXPECT_EQ(next().calls, (std::vector<Call>{{"10.0.0.1:1", "orders"}}));
}

TEST_F(RingPlanTest, WhereNobodyAnnouncesNothingIsToBeDone) {
  know({});
  EXPECT_FALSE(rang()) << "nobody need be woken for it";
  EXPECT_FALSE(next().read);
}

TEST_F(RingPlanTest, TheDeadAreNotRung) {
  know({host("a", "10.0.0.1:1")});
  EXPECT_TRUE(plan_.rang("orders", now_, kPlanWall + 180s));
  EXPECT_FALSE(plan_.rang("orders", now_, kPlanWall + 181s));
}

TEST_F(RingPlanTest, AHostDoesNotRingItself) {
  plan_.leave_out("a");
  know({host("a", "10.0.0.1:1"), host("b", "10.0.0.2:1")});
  rang();
  EXPECT_EQ(next().calls, (std::vector<Call>{{"10.0.0.2:1", "orders"}}));
}

TEST_F(RingPlanTest, OfManyHostsSomeAreRungAndNotAlwaysTheSame) {
  std::vector<Announcement> hosts;
  for (int i = 0; i < 64; ++i) {
    hosts.push_back(host(std::to_string(i), "10.0.0." + std::to_string(i) + ":1"));
  }
  know(hosts);
  std::set<std::string> rung;
  for (int i = 0; i < 100; ++i) {
    now_ += RingPlan::kGap;
    rang();
    const auto calls = next().calls;
    EXPECT_EQ(calls.size(), RingPlan::kMostHosts);
    for (const Call& call : calls) {
      rung.insert(call.address);
    }
    if (i == 0) {
      EXPECT_EQ(rung.size(), RingPlan::kMostHosts) << "nobody twice";
    }
  }
  EXPECT_EQ(rung.size(), 64U);
}

TEST_F(RingPlanTest, AReadingThatFailsIsTriedAgainMoreAndMoreSeldom) {
  std::vector<Duration> waits;
  SteadyTime last = now_;
  for (; now_ < SteadyTime(2h); now_ += 1s) {
    rang();
    if (next().read) {
      waits.push_back(now_ - last);
      last = now_;
      plan_.failed(ErrorCode::unavailable, now_);
    }
  }
  ASSERT_GE(waits.size(), 8U);
  EXPECT_EQ(waits[1], 10s);
  EXPECT_EQ(waits[2], 20s);
  EXPECT_EQ(waits.back(), RingPlan::kLastRetry);
}

TEST_F(RingPlanTest, WhoMayNotReadAsksSeldom) {
  rang();
  ASSERT_TRUE(next().read);
  plan_.failed(ErrorCode::denied, now_);
  now_ += RingPlan::kLastRetry - 1s;
  EXPECT_FALSE(rang());
  now_ += 1s;
  EXPECT_TRUE(rang());
}

TEST_F(RingPlanTest, AFailedReadingLosesNobody) {
  know({host("a", "10.0.0.1:1")});
  now_ += 10s;
  rang();
  EXPECT_TRUE(next().read);
  plan_.failed(ErrorCode::timeout, now_);
  now_ += 1s;
  EXPECT_TRUE(rang());
  EXPECT_EQ(next().calls.size(), 1U);
}

TEST_F(RingPlanTest, TheEndWaitsForNoGap) {
  know({host("a", "10.0.0.1:1")});
  rang();
  next();
  rang();
  EXPECT_TRUE(next().calls.empty());
  plan_.hurry();
  EXPECT_EQ(next().calls.size(), 1U);
}

}  // namespace
}  // namespace sluice::queue::wake
