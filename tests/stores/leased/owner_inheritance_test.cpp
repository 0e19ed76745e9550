// What owners who died may have had at work stays suspect, through however many hands its shard goes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "dynamo/item_reading.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/leased_schema.hpp"
#include "tests/stores/leased/owner_world.hpp"

namespace sluice::test {
namespace {

using queue::CompletionAction;
using queue::Delivery;
using ::testing::IsEmpty;
using ::testing::SizeIs;

bool takes(OwnerWorld& world, const OwnerHost& host, std::size_t shards) {
  return world.pass_until([&] { return world.shards_of(host.name) == shards; }, 25s);
}

std::int64_t announced(OwnerWorld& world, const OwnerHost& host) {
  const auto beat = world.item(std::string(queue::leased::kHosts), host.name);
  return beat ? dynamo::whole_number(*beat, queue::leased::attribute::kInFlightBound).value_or(0) : 0;
}

/// Removes all there is, and returns how many of it came as suspects.
std::size_t suspects_among(OwnerWorld& world, OwnerHost& host) {
  std::size_t suspects = 0;
  for (int round = 0; round < 300; ++round) {
    for (const Delivery& delivery : host.claim(5)) {
      suspects += delivery.suspect ? 1U : 0U;
      host.settle(delivery, CompletionAction::remove);
    }
    world.pass(100ms);
  }
  return suspects;
}

/// The owner that has taken over from one that died with ten messages at work.
OwnerHost& heir_of_ten(OwnerWorld& world) {
  OwnerHost& dead = world.add("a/1");
  world.send(10);
  EXPECT_THAT(dead.claim(10), SizeIs(10));
  dead.kill();
  OwnerHost& heir = world.add("b/1");
  EXPECT_TRUE(takes(world, heir, 1));
  return heir;
}

TEST(OwnerInheritance, WhatANewOwnerHasNotBegunWithIsSuspectAtTheNextCrashTooAndSoIsWhatItHad) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  world.send(200);
  ASSERT_THAT(a.claim(200), SizeIs(200));
  EXPECT_EQ(announced(world, a), 356);
  a.kill();
  OwnerHost& b = world.add("b/1");
  ASSERT_TRUE(takes(world, b, 1));
  world.clock.advance(1s);
  world.send(60);
  std::size_t claimed = 0;
  while (claimed < 60) {
    const auto more = b.claim(60 - claimed, {}, false);
    ASSERT_FALSE(more.empty()) << "they come before all suspects where none of those may";
    claimed += more.size();
  }
  EXPECT_GE(announced(world, b), 260) << "they lie behind all of those";
  b.kill();
  OwnerHost& c = world.add("c/1");
  ASSERT_TRUE(takes(world, c, 1));
  EXPECT_EQ(suspects_among(world, c), 260U);
}

TEST(OwnerInheritance, OnceItIsWorkedOffTheShardIsHandedOverCleanly) {
  OwnerWorld world({.shards = 1});
  OwnerHost& b = heir_of_ten(world);
  const auto clean = [&] {
    const auto item = world.item(queue::leased::ownership_partition(kOwnersQueue, queue::Half::standard),
                                 queue::leased::ownership_sort(0));
    const bool* says = dynamo::find<bool>(*item, queue::leased::attribute::kClean);
    return says != nullptr && *says;
  };
  EXPECT_FALSE(clean());
  EXPECT_EQ(suspects_among(world, b), 10U);
  for (Duration passed{}; passed < 45s; passed += 100ms) {
    b.claim(1);
    world.clock.advance(100ms);
  }
  world.send(5);
  b.stop();
  EXPECT_TRUE(clean());
  b.kill();
  OwnerHost& c = world.add("c/1");
  ASSERT_TRUE(takes(world, c, 1));
  EXPECT_EQ(suspects_among(world, c), 0U);
}

TEST(OwnerInheritance, WhatIsAnnouncedFollowsWhatIsAtWork) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  world.send(200);
  auto held = a.claim(200);
  ASSERT_THAT(held, SizeIs(200));
  world.pass(180s);
  EXPECT_EQ(announced(world, a), 356) << "they are at work still";
  for (const Delivery& delivery : held) {
    a.settle(delivery, CompletionAction::remove);
  }
  world.pass(20s);
  EXPECT_EQ(announced(world, a), 356) << "it may be so again at once";
  world.pass(60s);
  EXPECT_EQ(announced(world, a), 116);
}

TEST(OwnerInheritance, AShardIsHandedOverWithItsSuspects) {
  OwnerWorld world({.shards = 2});
  OwnerHost& a = world.add("a/1");
  world.send(10, 100, {}, {}, 0);
  world.send(10, 100, {}, {}, 1);
  ASSERT_THAT(a.claim(20), SizeIs(20));
  a.kill();
  OwnerHost& b = world.add("b/1");
  ASSERT_TRUE(takes(world, b, 2));
  OwnerHost& c = world.add("c/1");
  ASSERT_TRUE(takes(world, c, 1));
  EXPECT_EQ(suspects_among(world, c), 10U);
  EXPECT_EQ(suspects_among(world, b), 10U);
}

TEST(OwnerInheritance, AShardThatIsGivenUpWithItsSuspectsIsTakenWithThem) {
  OwnerWorld world({.shards = 1});
  OwnerHost& b = heir_of_ten(world);
  b.stop();
  b.kill();
  OwnerHost& c = world.add("c/1");
  ASSERT_TRUE(takes(world, c, 1));
  EXPECT_EQ(suspects_among(world, c), 10U);
}

}  // namespace
}  // namespace sluice::test
