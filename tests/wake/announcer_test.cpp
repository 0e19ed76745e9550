#include <gtest/gtest.h>

#include "host/queue/wake/announcement.hpp"

namespace sluice::queue::wake {
namespace {

using namespace std::chrono_literals;

TEST(Announcer, AnnouncesAtOnceAndEachMinute) {
  Announcer announcer;
  announcer.queues({"orders"});
  SteadyTime now{};
  ASSERT_TRUE(announcer.due(now));
  EXPECT_FALSE(announcer.stands());
  announcer.announced(1, now);
  EXPECT_TRUE(announcer.stands());
  EXPECT_FALSE(announcer.due(now + 59s));
  EXPECT_TRUE(announcer.due(now + 60s));
}

TEST(Announcer, AChangeOfQueuesDoesNotWait) {
  Announcer announcer;
  announcer.queues({"orders"});
  announcer.announced(1, {});
  announcer.queues({"orders"});
  EXPECT_FALSE(announcer.due(SteadyTime(1s)));
  announcer.queues({"orders", "orders/dlq"});
  EXPECT_TRUE(announcer.due(SteadyTime(1s)));
}

// Sixty-four hosts make an item of some 6 KB.
TEST(Announcer, WhereManyShareAnItemEachWritesMoreSeldom) {
  Announcer announcer;
  announcer.queues({"orders"});
  SteadyTime now{};
  double units = 0;
  int writes = 0;
  for (; now < SteadyTime(10h); now = announcer.next()) {
    const SteadyTime promised = now + announcer.interval();
    announcer.announced(7, now);
    EXPECT_LE(announcer.next(), promised) << "nobody waits longer for it than it said";
    units += 7;
    ++writes;
  }
  EXPECT_GT(writes, 100);
  EXPECT_LE(units / 36'000, Announcer::kWriteUnits * 1.05);
}

TEST(Announcer, HasALongestInterval) {
  Announcer announcer;
  announcer.queues({"orders"});
  announcer.announced(400, {});
  EXPECT_EQ(announcer.interval(), kLongestInterval);
}

TEST(Announcer, TriesAgainMoreAndMoreSeldom) {
  Announcer announcer;
  announcer.queues({"orders"});
  SteadyTime now{};
  Duration before{};
  for (int i = 0; i < 20; ++i) {
    announcer.failed(now);
    const Duration wait = announcer.next() - now;
    EXPECT_GE(wait, before);
    EXPECT_LE(wait, Announcer::kLastRetry);
    before = wait;
    now = announcer.next();
  }
  EXPECT_EQ(before, Announcer::kLastRetry);
  EXPECT_TRUE(announcer.stands()) << "it may have been written all the same";
  announcer.announced(1, now);
  announcer.failed(now);
  EXPECT_EQ(announcer.next(), now + Announcer::kFirstRetry);
}

}  // namespace
}  // namespace sluice::queue::wake
