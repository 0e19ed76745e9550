// Hosts that own shards, on the model of DynamoDB, under virtual time and on one thread.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/stores/leased/owner_world.hpp"

namespace sluice::test {
namespace {

using queue::CompletionAction;
using queue::Delivery;
using queue::SettleStatus;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> ids_of(const std::vector<Delivery>& deliveries) {
  std::vector<std::string> ids;
  ids.reserve(deliveries.size());
  for (const Delivery& delivery : deliveries) {
    ids.push_back(delivery.message.id);
  }
  return ids;
}

/// How many shards each host has, by the items.
std::map<std::string, int> shares(OwnerWorld& world) {
  std::map<std::string, int> shares;
  for (const auto& [shard, owner] : world.owners()) {
    ++shares[owner];
  }
  return shares;
}

/// Works off what there is: how many came.
std::size_t work_off(OwnerHost& host, std::size_t most = 100'000) {
  std::size_t done = 0;
  while (done < most) {
    const auto claimed = host.claim(100);
    if (claimed.empty()) {
      break;
    }
    std::vector<queue::Completion> completions;
    completions.reserve(claimed.size());
    for (const Delivery& delivery : claimed) {
      completions.push_back({.receipt = delivery.receipt});
    }
    for (const auto& result : host.settle(completions)) {
      EXPECT_EQ(result.status, SettleStatus::applied) << result.error.message();
      ++done;
    }
  }
  return done;
}

TEST(OwnersTest, TheFirstHostTakesAllShardsAndHandsOutWhatIsThere) {
  OwnerWorld world({});
  const auto ids = world.send(50);
  OwnerHost& a = world.add("a/1");
  EXPECT_EQ(shares(world)["a/1"], 8);
  const auto claimed = a.claim(100);
  EXPECT_THAT(ids_of(claimed), ::testing::UnorderedElementsAreArray(ids));
  for (const Delivery& delivery : claimed) {
    EXPECT_EQ(delivery.message.attempt, 1U);
    EXPECT_FALSE(delivery.suspect);
    EXPECT_EQ(delivery.leased_until, SteadyTime::max());
    EXPECT_EQ(a.settle(delivery, CompletionAction::remove).status, SettleStatus::applied);
  }
  EXPECT_THAT(world.messages(), IsEmpty());
  EXPECT_THAT(a.claim(10), IsEmpty());
  EXPECT_GT(a.readies, 0);
}

TEST(OwnersTest, ARetryComesBackInItsTimeAndCounts) {
  OwnerWorld world({});
  world.send(1);
  OwnerHost& a = world.add("a/1");
  auto claimed = a.claim(1);
  ASSERT_THAT(claimed, SizeIs(1));
  EXPECT_EQ(a.settle(claimed.front(), CompletionAction::retry, 10s).status, SettleStatus::applied);
  world.pass(9s);
  EXPECT_THAT(a.claim(1), IsEmpty());
  world.pass(2s);
  claimed = a.claim(1);
  ASSERT_THAT(claimed, SizeIs(1));
  EXPECT_EQ(claimed.front().message.attempt, 2U);
  EXPECT_EQ(a.settle(claimed.front(), CompletionAction::release).status, SettleStatus::applied);
  claimed = a.claim(1);
  ASSERT_THAT(claimed, SizeIs(1));
  EXPECT_EQ(claimed.front().message.attempt, 2U) << "a release gives the attempt back";
}

TEST(OwnersTest, AJoinerGetsItsShareWhileTheOthersWork) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  world.pass(1s);
  OwnerHost& b = world.add("b/1");
  ASSERT_TRUE(world.pass_until([&] { return shares(world)["b/1"] == 4; }, 5s));
  EXPECT_EQ(shares(world)["a/1"], 4);
  world.send(100);
  EXPECT_EQ(work_off(a) + work_off(b), 100U);
}

TEST(OwnersTest, AShardWithSomethingOutIsHandedOverOnceItIsSettled) {
  OwnerWorld world({.shards = 2});
  world.send(2, 100, {}, {}, 0);
  world.send(2, 100, {}, {}, 1);
  OwnerHost& a = world.add("a/1");
  const auto held = a.claim(10);
  ASSERT_THAT(held, SizeIs(4));
  world.add("b/1");
  world.pass(5s);
  EXPECT_EQ(shares(world)["a/1"], 2);
  world.send(1, 100, {}, {}, 1);
  for (const Delivery& delivery : held) {
    EXPECT_EQ(a.settle(delivery, CompletionAction::remove).status, SettleStatus::applied);
  }
  EXPECT_EQ(shares(world)["b/1"], 1) << "at the settlement";
}

TEST(OwnersTest, AHostThatStopsHandsEverythingOverBeforeItReturns) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  OwnerHost& b = world.add("b/1");
  world.pass(3s);
  a.stop();
  a.kill();
  EXPECT_EQ(shares(world)["b/1"], 8);
  EXPECT_TRUE(world.item("@hosts", "a/1")->contains("q")) << "it says that it leaves";
  world.send(100);
  ASSERT_TRUE(world.pass_until([&] { return b.half().figures().shards == 8; }, 2s));
  EXPECT_EQ(work_off(b), 100U);
  world.pass(150s);
  EXPECT_FALSE(world.item("@hosts", "a/1")) << "what a host leaves behind is cleared up";
  EXPECT_EQ(shares(world)["b/1"], 8);
}

TEST(OwnersTest, AStopThatTheTableHoldsUpHandsEverythingOverAllTheSame) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  world.add("b/1");
  world.pass(3s);
  ASSERT_EQ(shares(world)["a/1"], 4);
  // More than the client asks again for by itself.
  world.model.inject(
      model::Fault::refuse,
      [](const std::string& operation, const std::string& body) {
        return operation == "PutItem" && body.find("orders@") != std::string::npos;
      },
      60);
  a.stop();
  a.kill();
  EXPECT_EQ(shares(world)["b/1"], 8);
}

TEST(OwnersTest, AShardIsNotHandedOverToAHostThatHasLeftMeanwhile) {
  OwnerWorld world({.shards = 2});
  world.send(2, 100, {}, {}, 0);
  world.send(2, 100, {}, {}, 1);
  OwnerHost& a = world.add("a/1");
  const auto held = a.claim(10);
  ASSERT_THAT(held, SizeIs(4));
  OwnerHost& b = world.add("b/1");
  world.pass(1s);  // the first knows whose a shard is to be
  ASSERT_EQ(world.shards_of("b/1"), 0U) << "it is still at work with what lies in both";
  b.stop();
  b.kill();
  for (const Delivery& delivery : held) {
    EXPECT_EQ(a.settle(delivery, CompletionAction::remove).status, SettleStatus::applied);
  }
  EXPECT_EQ(shares(world)["a/1"], 2);
  EXPECT_EQ(shares(world)["b/1"], 0);
}

// Its heartbeats went on until the process ended, and so did what it told of a half that others owned.
TEST(OwnersTest, AHalfThatCouldNotBeLeftAtOnceIsForgottenOnceItsShardsAreOthers) {
  OwnerWorld world({.shards = 2});
  world.send(2, 100, {}, {}, 0);
  world.send(2, 100, {}, {}, 1);
  OwnerHost& a = world.add("a/1");
  const auto held = a.claim(10);
  ASSERT_THAT(held, SizeIs(4));
  world.add("b/1");
  world.pass(5s);
  a.stop();
  world.pass(5s);
  EXPECT_EQ(shares(world)["a/1"], 2);
  for (const Delivery& delivery : held) {
    EXPECT_EQ(a.settle(delivery, CompletionAction::remove).status, SettleStatus::applied);
  }
  EXPECT_EQ(shares(world)["b/1"], 2);
  world.pass(1s);
  const auto last = world.item("@hosts", "a/1");
  ASSERT_TRUE(last && last->contains("q"));
  world.pass(15s);
  EXPECT_EQ(world.item("@hosts", "a/1"), last) << "it beats no more";
  EXPECT_THAT(a.warnings, IsEmpty());
  world.pass(150s);
  EXPECT_FALSE(world.item("@hosts", "a/1")) << "others clear it up";
}

TEST(OwnersTest, TheLastHostLeavesThemToNobodyAndTheNextTakesThemCleanly) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  a.stop();
  a.kill();
  EXPECT_EQ(shares(world)[""], 8);
  world.send(10);
  OwnerHost& b = world.add("b/1");
  for (const Delivery& delivery : b.claim(100)) {
    EXPECT_FALSE(delivery.suspect);
  }
}

TEST(OwnersTest, WhatADeadHostHeldComesBackWithinItsLeaseAndTwoSeconds) {
  for (const Duration after : {0ms, 900ms, 1700ms, 2500ms, 3300ms}) {
    OwnerWorld world({});
    OwnerHost& a = world.add("a/1");
    OwnerHost& b = world.add("b/1");
    world.pass(12s);
    world.send(40);
    const auto held = a.claim(10);
    ASSERT_FALSE(held.empty());
    world.pass(after);
    a.kill();
    const SteadyTime died = world.clock.steady_now();
    std::set<std::string> wanted;
    for (const auto& delivery : held) {
      wanted.insert(delivery.message.id);
    }
    bool all = false;
    while (!all && world.clock.steady_now() < died + 20s) {
      for (const Delivery& delivery : b.claim(100)) {
        if (wanted.erase(delivery.message.id) > 0) {
          EXPECT_TRUE(delivery.suspect) << "nobody knows what became of it";
          EXPECT_EQ(delivery.message.attempt, 1U);
        }
        b.settle(delivery, CompletionAction::remove);
      }
      all = wanted.empty();
      world.clock.advance(100ms);
    }
    EXPECT_LE(world.clock.steady_now() - died, 12s) << after.count();
    EXPECT_THAT(b.warnings, Contains(HasSubstr("was not handed over by 'a/1'")));
  }
}

TEST(OwnersTest, ASuspectComesAloneAndItsStartIsWrittenBefore) {
  OwnerWorld world({.shards = 1});
  world.send(3);
  OwnerHost& a = world.add("a/1");
  ASSERT_THAT(a.claim(1), SizeIs(1));
  a.kill();
  OwnerHost& b = world.add("b/1");
  ASSERT_TRUE(world.pass_until([&] { return shares(world)["b/1"] == 1; }, 20s));
  EXPECT_THAT(b.claim(10, {}, false), IsEmpty()) << "all of them may have been out: a had announced more";
  const auto first = b.claim(10);
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_TRUE(first.front().suspect);
  const auto items = world.messages();
  EXPECT_EQ(std::count_if(items.begin(), items.end(), [](const auto& item) { return item.contains("q"); }), 1);
  b.kill();
  OwnerHost& c = world.add("c/1");
  ASSERT_TRUE(world.pass_until([&] { return shares(world)["c/1"] == 1; }, 20s));
  const auto again = c.claim(10);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again.front().message.id, first.front().message.id);
  EXPECT_EQ(again.front().message.attempt, 2U) << "its own starts count";
  EXPECT_EQ(c.settle(again.front(), CompletionAction::remove).status, SettleStatus::applied);
}

TEST(OwnersTest, AnEditOfWhatIsAtWorkWinsOverItsEnd) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  world.send(2);
  const auto claimed = a.claim(2);
  ASSERT_THAT(claimed, SizeIs(2));
  for (dynamo::Item item : world.messages()) {
    item.insert_or_assign("v", dynamo::AttributeValue::number(2));
    item.insert_or_assign("b", "edited");
    world.put(std::move(item));
  }
  EXPECT_EQ(a.settle(claimed[0], CompletionAction::remove).status, queue::SettleStatus::lost);
  EXPECT_EQ(a.settle(claimed[1], CompletionAction::retry, 1s).status, queue::SettleStatus::lost);
  EXPECT_THAT(world.messages(), SizeIs(2));
  world.pass(1s);
  const auto again = a.claim(2);
  ASSERT_THAT(again, SizeIs(2));
  EXPECT_EQ(again.front().message.body, "edited");
}

TEST(OwnersTest, AHostThatSleepsForAnHourFindsItsLeaseGone) {
  OwnerWorld world({.shards = 2});
  world.send(4);
  OwnerHost& a = world.add("a/1");
  const auto held = a.claim(2);
  ASSERT_THAT(held, SizeIs(2));
  a.clock.sleeps(1h);
  OwnerHost& b = world.add("b/1");
  for (Duration passed{}; passed < 1h; passed += 1s) {
    world.clock.advance(1s);
    if (passed > 1h - 20s) {
      b.tend();
    }
  }
  EXPECT_EQ(a.settle(held[0], CompletionAction::retry).status, SettleStatus::lost) << "it is not its own any more";
  EXPECT_THAT(a.claim(10), IsEmpty());
  EXPECT_EQ(a.settle(held[1], CompletionAction::remove).status, SettleStatus::applied) << "done is done";
  EXPECT_THAT(a.out, IsEmpty()) << "it was told";
  EXPECT_THAT(a.warnings, Contains(HasSubstr("slept")));
}

TEST(OwnersTest, AHostWhoseHeartbeatsDoNotArriveStopsInTime) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  world.send(100);
  ASSERT_FALSE(a.claim(5).empty());
  world.model.inject(
      model::Fault::refuse, [](const std::string& operation, const std::string&) { return operation == "PutItem"; },
      1000);
  world.pass(8s);
  EXPECT_THAT(a.claim(5), IsEmpty()) << "in the last third of its lease nothing is started";
  EXPECT_FALSE(a.out.empty()) << "and what is out is still its own";
  world.pass(4s);
  EXPECT_TRUE(a.out.empty());
  EXPECT_THAT(a.warnings, Contains(HasSubstr("no heartbeat can be written")));
  world.model.clear_faults();
  ASSERT_TRUE(world.pass_until([&] { return !a.claim(5).empty(); }, 5s));
}

TEST(OwnersTest, AnIdleHostCostsNextToNothing) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  const auto idle = [&](Duration span) {
    for (Duration passed{}; passed < span; passed += 50ms) {
      world.clock.advance(50ms);
      EXPECT_THAT(a.claim(10), IsEmpty());
    }
  };
  idle(5s);
  const double reads = world.read_units();
  const double writes = world.write_units();
  idle(120s);
  const double read = (world.read_units() - reads) / 120;
  const double written = (world.write_units() - writes) / 120;
  std::printf("idle with 8 shards: %.2f RCU and %.2f WCU a second\n", read, written);
  EXPECT_LE(read, 5.0);
  EXPECT_LE(written, 0.5);
}

TEST(OwnersTest, TheFirstMessageIsSeenWithinASecondAndAtOnceWhenItRings) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  for (int round = 0; round < 20; ++round) {
    world.clock.advance(std::chrono::milliseconds(world.random.below(3000)));
    a.claim(10);
    world.send(1);
    const SteadyTime sent = world.clock.steady_now();
    while (work_off(a) == 0) {
      world.clock.advance(10ms);
    }
    EXPECT_LE(world.clock.steady_now() - sent, 1s + 10ms);
    world.clock.advance(50ms);
    world.send(1);
    a.ring();
    EXPECT_EQ(work_off(a), 1U) << round;
  }
}

}  // namespace
}  // namespace sluice::test
