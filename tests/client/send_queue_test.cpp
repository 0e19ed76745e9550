#include "client/src/send_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::client::detail {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""ns;
using ::testing::ElementsAre;

constexpr SteadyTime kBegin{1h};

SendQueue queue_of(std::size_t messages, std::size_t bytes) { return SendQueue({messages, bytes, 5ms, 200}); }

// `bytes` is all that it takes.
std::uint64_t add(SendQueue& queue, const std::string& id, std::size_t bytes = 1) {
  Outgoing outgoing;
  outgoing.message.id = id;
  outgoing.message.content_type.clear();
  outgoing.message.body.assign(bytes - id.size(), 'x');
  return queue.add(std::move(outgoing), kBegin);
}

std::vector<std::string> take(SendQueue& queue, std::size_t count) {
  std::vector<std::string> ids;
  for (const Outgoing& outgoing : queue.take(count)) {
    ids.push_back(outgoing.message.id);
  }
  return ids;
}

/// What is ordered of so many, which all came at once, that long after they did.
BatchOrder order_of(std::size_t count, Duration after, bool hurry = false, Duration linger = 5ms) {
  SendQueue queue({20'000, 1'000'000, linger, 200});
  for (std::size_t i = 0; i < count; ++i) {
    add(queue, "m");
  }
  if (hurry) {
    queue.hurry(queue.end());
  }
  return queue.order(kBegin + after);
}

TEST(SendQueue, WaitsForEverWhenThereIsNothing) {
  EXPECT_EQ(order_of(0, 1h, true).take, 0U);
  EXPECT_EQ(order_of(0, 1h, true).wait_until, SteadyTime::max());
}

TEST(SendQueue, LetsLessThanABatchLinger) {
  EXPECT_EQ(order_of(24, 2ms).take, 0U);
  EXPECT_EQ(order_of(24, 2ms).wait_until, kBegin + 5ms);
  EXPECT_EQ(order_of(24, 5ms - 1ns).take, 0U);
  EXPECT_EQ(order_of(24, 5ms).take, 24U);
}

TEST(SendQueue, SendsWholeBatchesAndKeepsTheRest) {
  EXPECT_EQ(order_of(25, 0ms).take, 25U);
  EXPECT_EQ(order_of(49, 1h).take, 25U) << "the rest's own oldest decides about the rest";
  EXPECT_EQ(order_of(75, 0ms).take, 75U);
}

TEST(SendQueue, SendsNoMoreThanALotAtOnce) {
  EXPECT_EQ(order_of(10'000, 0ms).take, 200U);
  EXPECT_EQ(order_of(10'000, 0ms, true).take, 200U);
}

TEST(SendQueue, HurryWaitsForNobody) { EXPECT_EQ(order_of(1, 0ms, true).take, 1U); }

TEST(SendQueue, ALingerOfAnyLengthIsAFarTime) {
  const BatchOrder order = order_of(1, 0ms, false, Duration::max());
  EXPECT_EQ(order.take, 0U);
  EXPECT_GT(order.wait_until, kBegin + 1000h);
  EXPECT_EQ(order_of(1, 0ms, false, Duration::zero()).take, 1U);
}

TEST(SendQueue, GivesMessagesInTheirOrder) {
  SendQueue queue = queue_of(10, 100);
  EXPECT_EQ(add(queue, "a"), 0U);
  EXPECT_EQ(add(queue, "b"), 1U);
  EXPECT_EQ(add(queue, "c"), 2U);
  EXPECT_THAT(take(queue, 2), ElementsAre("a", "b"));
  EXPECT_THAT(take(queue, 2), ElementsAre("c"));
  EXPECT_TRUE(queue.empty());
}

TEST(SendQueue, HoldsNoMoreThanItsLimitsUntilThereAreResults) {
  SendQueue queue = queue_of(2, 100);
  add(queue, "a");
  EXPECT_TRUE(queue.has_room(1));
  add(queue, "b");
  EXPECT_FALSE(queue.has_room(1));
  take(queue, 1);
  EXPECT_FALSE(queue.has_room(1)) << "what is on its way still takes its room";
  queue.free_taken();
  EXPECT_TRUE(queue.has_room(1));
}

TEST(SendQueue, CountsBytesWithoutOverflow) {
  SendQueue queue = queue_of(10, 100);
  EXPECT_TRUE(queue.has_room(1'000)) << "alone, any message may come";
  add(queue, "a", 60);
  EXPECT_TRUE(queue.has_room(40));
  EXPECT_FALSE(queue.has_room(41));
  EXPECT_FALSE(queue.has_room(SIZE_MAX));
  add(queue, "b", 40);
  EXPECT_FALSE(queue.has_room(0));
  take(queue, 2);
  queue.free_taken();
  EXPECT_TRUE(queue.has_room(1'000));
}

TEST(SendQueue, CountsAllThatAMessageTakes) {
  EXPECT_EQ(bytes_of({.id = "1",
                      .body = "22",
                      .content_type = "333",
                      .attributes = {{"4444", "55555"}, {"", "666666"}},
                      .group = "7777777"}),
            28U);
}

TEST(SendQueue, HurriesForWhatWasAskedForAndNoFurther) {
  SendQueue queue = queue_of(10, 100);
  add(queue, "a");
  EXPECT_EQ(queue.order(kBegin).take, 0U);
  queue.hurry(queue.end());
  EXPECT_EQ(queue.order(kBegin).take, 1U);
  take(queue, 1);
  queue.free_taken();
  queue.settle_taken();
  add(queue, "b");
  EXPECT_EQ(queue.order(kBegin).take, 0U);
  queue.hurry(1);
  EXPECT_EQ(queue.order(kBegin).take, 0U) << "an old wish changes nothing";
}

TEST(SendQueue, KnowsWhatHasItsResults) {
  SendQueue queue = queue_of(10, 100);
  add(queue, "a");
  add(queue, "b");
  const std::uint64_t end = queue.end();
  EXPECT_FALSE(queue.settled_up_to(end));
  take(queue, 1);
  queue.free_taken();
  queue.settle_taken();
  EXPECT_TRUE(queue.settled_up_to(1));
  EXPECT_FALSE(queue.settled_up_to(end));
  take(queue, 1);
  queue.free_taken();
  EXPECT_FALSE(queue.settled_up_to(end)) << "those who asked have not heard yet";
  queue.settle_taken();
  EXPECT_TRUE(queue.settled_up_to(end));
}

}  // namespace
}  // namespace sluice::client::detail
