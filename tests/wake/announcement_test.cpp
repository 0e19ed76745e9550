#include "host/queue/wake/announcement.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/resolver.hpp"
#include "host/queue/wake/datagram.hpp"
#include "tests/support/hanging_name.hpp"

namespace sluice::queue::wake {
namespace {

using namespace std::chrono_literals;

const WallTime kNow{1'800'000'000s};

Announcement announcement() {
  return {.host = "a/1:x", .address = "10.0.0.5:7011", .queues = {"orders", "orders/dlq"}, .at = kNow, .every = 60s};
}

TEST(Announcement, IsOneLineAndReadBackAsItWas) {
  const std::string text = encode(announcement());
  EXPECT_EQ(text, "1 10.0.0.5:7011 1800000000 60 orders orders/dlq");
  EXPECT_EQ(decode("a/1:x", text), announcement());
  Announcement six = announcement();
  six.address = "[fd00::5]:7011";
  six.queues.clear();
  EXPECT_EQ(decode("a/1:x", encode(six)), six);
}

TEST(Announcement, WhatNobodyCanHaveWrittenIsNone) {
  for (const char* text :
       {"", "1", "2 10.0.0.5:7011 1 60 orders", "1 10.0.0.5 1 60 orders", "1 10.0.0.5:0 1 60 orders",
        "1 0.0.0.0:7011 1 60 orders", "1 [::]:7011 1 60 orders", "1 worker.example:7011 1 60 orders",
        "1 fd00::5:7011 1 60 orders", "1 10.0.0.5:70111 1 60 orders", "1 10.0.0.5:7011 -1 60 orders",
        "1 10.0.0.5:7011 99999999999 60 orders", "1 10.0.0.5:7011 1 0 orders", "1 10.0.0.5:7011 1 -60 orders",
        "1 10.0.0.5:7011 1 x orders", "1 10.0.0.5:7011 1 60  orders", "1  1 60 orders"}) {
    EXPECT_FALSE(decode("a", text)) << text;
  }
  const std::string good = encode(announcement());
  EXPECT_TRUE(decode("a", good + " " + std::string(kMostNameBytes, 'q')));
  EXPECT_FALSE(decode("a", good + " " + std::string(kMostNameBytes + 1, 'q')));
  std::string many = good;
  while (many.size() <= kMostAnnouncementBytes) {
    many += " q";
  }
  EXPECT_FALSE(decode("a", many));
}

TEST(Announcement, IsFreshForThreeOfItsIntervals) {
  const Announcement told = announcement();
  EXPECT_TRUE(fresh(told, kNow));
  EXPECT_TRUE(fresh(told, kNow + 180s));
  EXPECT_FALSE(fresh(told, kNow + 181s));
}

TEST(Announcement, OneFromTheFutureOrForEverIsNotBelieved) {
  Announcement told = announcement();
  EXPECT_TRUE(fresh(told, kNow - kFarthestAhead));
  EXPECT_FALSE(fresh(told, kNow - kFarthestAhead - 1s));
  told.every = 24h;
  EXPECT_TRUE(fresh(told, kNow + 3 * kLongestInterval));
  EXPECT_FALSE(fresh(told, kNow + 3 * kLongestInterval + 1s));
}

TEST(Announcement, HalvesHaveBellsOfTheirOwn) {
  EXPECT_EQ(bell_name("orders", Half::standard), "orders");
  EXPECT_EQ(bell_name("orders", Half::dlq), "orders/dlq");
}

TEST(Address, NumbersAreReadWithoutAskingAnybody) {
  for (const char* text : {"127.0.0.1:0", "10.0.0.5:7011", "[::1]:65535", "[fd00::5]:7011"}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(text_of(*address), text);
  }
  for (const char* text : {"", ":", ":1", "localhost:1", "1.2.3:1", "::1:1", "[::1]", "[127.0.0.1]:1", "[]:1",
                           "[::1]x:1", "[::1]1", "127.0.0.1:", "127.0.0.1:-1", "127.0.0.1:65536", "127.0.0.1: 1"}) {
    EXPECT_FALSE(parse_address(text)) << text;
  }
}

TEST(Address, NamesAreResolvedWhereThatIsAskedFor) {
  const SystemClock clock;
  const auto local = resolve_address("localhost:7011", clock, Deadline::never());
  ASSERT_TRUE(local) << local.error().message();
  EXPECT_EQ(local->port(), 7011);
  EXPECT_FALSE(local->address().is_unspecified());
  EXPECT_EQ(resolve_address("nonsense", clock, Deadline::never()).error().code(), ErrorCode::invalid);
}

TEST(Address, ANameThatTheResolverHangsOverIsNotWaitedFor) {
  const SystemClock clock;
  const auto resolve = [&clock](Duration patience) {
    return resolve_address("wake.hangs.invalid:7011", clock, Deadline::after(clock, patience)).error().code();
  };
  EXPECT_EQ(resolve(50ms), ErrorCode::timeout);
  test::hang().let_go();
  EXPECT_EQ(resolve(20s), ErrorCode::unavailable) << "its thread has ended";
}

}  // namespace
}  // namespace sluice::queue::wake
