#include <gtest/gtest.h>

#include "host/observe/shipper.hpp"
#include "tests/support/fake_random.hpp"

namespace sluice::observe {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

using Kind = Judgement::Kind;

constexpr SteadyTime kStart{seconds(1000)};

ShipLimits small() {
  ShipLimits limits;
  limits.items = 6;
  limits.bytes = 60;
  limits.batch_items = 3;
  limits.batch_bytes = 20;
  return limits;
}

Judgement taken() { return {}; }
Judgement failed(const std::string& why, std::optional<Duration> wait = {}) { return {Kind::again, 0, wait, why}; }

class ShipQueueTest : public testing::Test {
 protected:
  void put(int count, const std::string& text = "item") {
    for (int i = 0; i < count; ++i) {
      queue.put(text, now);
    }
  }

  test::FakeRandom random{1};
  SteadyTime now = kStart;
  ShipQueue queue{small(), random};
};

TEST_F(ShipQueueTest, AnItemWaitsForCompanyAndNoLongerThanItMay) {
  EXPECT_EQ(queue.next(now).wake, SteadyTime::max());
  put(1);
  const ShipQueue::Order first = queue.next(now);
  EXPECT_FALSE(first.send);
  EXPECT_EQ(first.wake, now + seconds(1));
  now = first.wake;
  const ShipQueue::Order second = queue.next(now);
  EXPECT_TRUE(second.send);
  EXPECT_EQ(second.deadline, now + seconds(10));
  EXPECT_EQ(queue.batch().size(), 1U);
  EXPECT_FALSE(queue.next(now).send) << "one request at a time";
  queue.answered(taken(), now);
  EXPECT_TRUE(queue.idle());
  EXPECT_EQ(queue.figures().sent, 1U);
}

TEST_F(ShipQueueTest, AFullBatchGoesAtOnceAndBatchesHaveLimits) {
  put(4);
  EXPECT_TRUE(queue.next(now).send);
  EXPECT_EQ(queue.batch().size(), 3U);
  queue.answered(taken(), now);
  EXPECT_EQ(queue.figures().waiting, 1U);

  put(2, std::string(15, 'x'));
  now += seconds(1);
  EXPECT_TRUE(queue.next(now).send);
  EXPECT_EQ(queue.batch(), (std::vector<std::string>{"item", std::string(15, 'x')})) << "20 bytes and no more";
}

TEST_F(ShipQueueTest, WhatThereIsNoRoomForIsDroppedCountedAndToldOnceAMinute) {
  put(9);
  EXPECT_EQ(queue.figures().waiting, 6U);
  EXPECT_EQ(queue.figures().dropped, 3U);
  const auto notice = queue.notice(now);
  ASSERT_TRUE(notice);
  EXPECT_EQ(notice->dropped, 3U);
  EXPECT_EQ(notice->why, "it does not keep up");
  put(5);
  now += seconds(59);
  EXPECT_FALSE(queue.notice(now));
  now += seconds(1);
  EXPECT_EQ(queue.notice(now)->dropped, 5U);
  now += minutes(5);
  EXPECT_FALSE(queue.notice(now)) << "nothing was dropped since";
}

TEST_F(ShipQueueTest, BytesAreBoundedTooWhileABatchIsUnderWay) {
  put(3, std::string(20, 'x'));
  now += seconds(1);
  EXPECT_TRUE(queue.next(now).send);
  EXPECT_FALSE(queue.put("y", now)) << "what is under way still takes room";
  queue.answered(taken(), now);
  EXPECT_TRUE(queue.put("y", now));
}

TEST_F(ShipQueueTest, AFailureIsTriedAgainAfterAGrowingWait) {
  put(3);
  std::vector<Duration> waits;
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(queue.next(now).send);
    queue.answered(failed("503"), now);
    const SteadyTime wake = queue.next(now).wake;
    waits.push_back(wake - now);
    now = wake;
  }
  EXPECT_EQ(queue.batch().size(), 3U) << "the same batch";
  EXPECT_EQ(queue.trouble(), "503");
  EXPECT_EQ(queue.figures().failed, 8U);
  EXPECT_GE(waits[0], milliseconds(500));
  EXPECT_LE(waits[0], seconds(1));
  EXPECT_GT(waits[3], waits[1]);
  for (const Duration wait : waits) {
    EXPECT_LE(wait, seconds(60));
  }
  EXPECT_TRUE(queue.next(now).send);
  queue.answered(taken(), now);
  EXPECT_EQ(queue.trouble(), "");
  EXPECT_EQ(queue.figures().sent, 3U);
  put(3);
  EXPECT_TRUE(queue.next(now).send) << "all waits are over";
}

TEST_F(ShipQueueTest, ACollectorThatAsksToBeLeftAloneIs) {
  put(3);
  EXPECT_TRUE(queue.next(now).send);
  queue.answered(failed("429", seconds(120)), now);
  EXPECT_EQ(queue.next(now).wake, now + seconds(120));
}

TEST_F(ShipQueueTest, WhatIsRefusedOrCannotBeHandedOverForLongIsGivenUp) {
  put(3);
  EXPECT_TRUE(queue.next(now).send);
  queue.answered({Kind::refused, 0, std::nullopt, "401"}, now);
  EXPECT_EQ(queue.figures().dropped, 3U);
  EXPECT_TRUE(queue.idle());
  EXPECT_EQ(queue.notice(now)->why, "401");

  now += minutes(10);
  put(3);
  const SteadyTime begun = now;
  while (queue.figures().dropped == 3) {
    const ShipQueue::Order order = queue.next(now);
    if (order.send) {
      queue.answered(failed("no connection"), now);
    } else {
      ASSERT_NE(order.wake, SteadyTime::max());
      now = order.wake;
    }
    ASSERT_LT(now - begun, minutes(10));
  }
  EXPECT_EQ(queue.figures().dropped, 6U);
}

TEST_F(ShipQueueTest, WhatACollectorRejectsOfABatchIsDropped) {
  put(3);
  EXPECT_TRUE(queue.next(now).send);
  queue.answered({Kind::taken, 2, std::nullopt, "too old"}, now);
  EXPECT_EQ(queue.figures().sent, 1U);
  EXPECT_EQ(queue.figures().dropped, 2U);
  EXPECT_EQ(queue.notice(now)->why, "too old");
}

TEST_F(ShipQueueTest, InAHurryNothingWaitsAndNoRequestOutlivesTheEnd) {
  put(1);
  queue.hurry(now, now + seconds(2));
  const ShipQueue::Order order = queue.next(now);
  EXPECT_TRUE(order.send);
  EXPECT_EQ(order.deadline, now + milliseconds(1900)) << "whoever waits hears of it before his time is over";
  queue.answered(failed("503", seconds(60)), now);
  EXPECT_EQ(queue.next(now).wake, now + milliseconds(100));
  queue.give_up();
  EXPECT_TRUE(queue.idle());
  EXPECT_EQ(queue.figures().dropped, 1U);
}

TEST_F(ShipQueueTest, ARequestThatTheEndCutsOffHidesNothingOfWhatWentWrongBefore) {
  put(1);
  queue.hurry(now, now + seconds(2));
  now = queue.next(now).deadline - milliseconds(140);
  queue.answered(failed("cannot trust it"), now);
  now = queue.next(now).wake;
  const ShipQueue::Order last = queue.next(now);
  EXPECT_TRUE(last.send);
  now = last.deadline;
  queue.answered(failed("no answer within 40 ms"), now);
  EXPECT_EQ(queue.trouble(), "cannot trust it");
  EXPECT_EQ(queue.figures().failed, 2U);
  now += milliseconds(100);
  EXPECT_FALSE(queue.next(now).send) << "it could not come back in time";
}

TEST_F(ShipQueueTest, WhereNothingElseWentWrongTheTimeThatIsOverDid) {
  put(1);
  queue.hurry(now, now + seconds(2));
  now = queue.next(now).deadline;
  queue.answered(failed("no answer"), now);
  EXPECT_EQ(queue.trouble(), "no answer");
  queue.hurry(now, now - seconds(1));
  EXPECT_FALSE(queue.next(now).send) << "no time is left";
}

TEST_F(ShipQueueTest, AHurryEndsAWait) {
  put(3);
  EXPECT_TRUE(queue.next(now).send);
  queue.answered(failed("429", seconds(120)), now);
  queue.hurry(now, now + seconds(2));
  EXPECT_TRUE(queue.next(now).send);
}

}  // namespace
}  // namespace sluice::observe
