// Owners whose clocks jump or stand still, and what others make of hosts that were away for a while.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/stores/leased/owner_world.hpp"

namespace sluice::test {
namespace {

using queue::owned::OwnLease;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(OwnLeaseClock, GoesOnWhileTheMachineSleeps) {
  FakeClock world;
  MachineClock machine(world);
  OwnLease clock(10s, machine);
  const SteadyTime before = clock.now();
  world.advance(3s);
  machine.sleeps(2s);
  EXPECT_EQ(clock.now() - before, 3s);
  EXPECT_EQ(clock.ahead(), 2s);
}

TEST(OwnLeaseClock, AWallClockThatIsSetBackTakesNothingAway) {
  FakeClock world;
  MachineClock machine(world);
  OwnLease clock(10s, machine);
  const SteadyTime before = clock.now();
  for (int i = 0; i < 10; ++i) {
    machine.wrong_by(1ms);
    EXPECT_EQ(clock.now() - before, (i + 1) * 1ms);
    machine.wrong_by({});
    EXPECT_EQ(clock.now() - before, (i + 1) * 1ms);
  }
}

TEST(OwnLeaseClock, AWallClockThatGoesFarAstrayDoesNotTakeItOutOfItsRange) {
  FakeClock machine;
  OwnLease clock(10s, machine);
  SteadyTime last = clock.now();
  for (int i = 0; i < 100; ++i) {
    machine.set_wall(WallTime(i % 2 == 0 ? 200 * 365 * 24h : 0h));
    EXPECT_GE(clock.now(), last);
    last = clock.now();
  }
  EXPECT_GE(clock.ahead(), 50 * 24h);
}

void refuse_heartbeats(OwnerWorld& world) {
  world.model.inject(
      model::Fault::refuse, [](const std::string& operation, const std::string&) { return operation == "PutItem"; },
      1000);
}

TEST(OwnerClocks, ManyShortSleepsAgeTheLeaseAsALongOneDoes) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  world.send(100);
  ASSERT_FALSE(a.claim(5).empty());
  refuse_heartbeats(world);
  const auto doze = [&](int times) {
    for (int i = 0; i < times; ++i) {
      a.clock.sleeps(900ms);
      world.clock.advance(900ms);
      a.tend();
    }
  };
  doze(8);
  EXPECT_THAT(a.claim(5), IsEmpty()) << "in the last third of its lease";
  EXPECT_FALSE(a.out.empty());
  doze(4);
  EXPECT_TRUE(a.out.empty());
  EXPECT_FALSE(a.believes_in_its_lease());
  EXPECT_THAT(a.warnings, Contains(HasSubstr("slept")));
}

TEST(OwnerClocks, WhatWasHandedOutBeforeALongSleepIsNotStartedAfterIt) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  world.send(100);
  ASSERT_FALSE(a.claim(5).empty());
  EXPECT_TRUE(a.holds());
  a.clock.sleeps(8s);
  world.clock.advance(8s);
  EXPECT_TRUE(a.holds()) << "its lease has not ended";
  a.clock.sleeps(12500ms);
  world.clock.advance(12500ms);
  EXPECT_FALSE(a.holds()) << "others may have it, and nobody has seen to the lease yet";
  a.tend();
  EXPECT_FALSE(a.claim(5).empty()) << "it is taken anew";
}

TEST(OwnerClocks, AJumpOfLessThanALeaseLosesNothingAndBringsTheNextHeartbeatCloser) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  world.send(100);
  ASSERT_FALSE(a.claim(5).empty());
  a.clock.wrong_by(8s);
  EXPECT_FALSE(a.claim(5).empty()) << "the lease is renewed at once";
  EXPECT_EQ(a.out.size(), 10U);
  EXPECT_THAT(a.warnings, IsEmpty());
}

/// A host that has a shard, and another one that watches it.
class OwnerWatch : public ::testing::Test {
 protected:
  // What a test hooks in does not outlive it; its hosts still hand over.
  void TearDown() override {
    b_.wire().before({});
    b_.wire().after({});
  }
  // Lets only the second one work for so long.
  void watch(Duration span) {
    for (Duration passed{}; passed < span; passed += 100ms) {
      world_.clock.advance(100ms);
      b_.tend();
    }
  }
  void pass_until_a_beats() {
    const auto beat = [this] { return world_.item("@hosts", "a/1")->at("c"); };
    const auto before = beat();
    ASSERT_TRUE(world_.pass_until([&] { return beat() != before; }, 10s));
  }
  static bool reads_consistently(const dynamo::HttpRequest& request) {
    return request.body.find("\"ConsistentRead\":true") != std::string::npos;
  }

  OwnerWorld world_{WorldPlan{.shards = 1}};
  OwnerHost& a_ = world_.add("a/1");
  OwnerHost& b_ = world_.add("b/1");
};

TEST_F(OwnerWatch, WhatAHostTakesAnewAsItWakesUpIsNotTakenFromItByOneThatWasLooking) {
  pass_until_a_beats();
  watch(9s);
  SteadyTime looked_at{};
  int reads = 0;
  bool woken = false;
  b_.wire().before([&](const dynamo::HttpRequest& request) {
    if (!reads_consistently(request)) {
      return;
    }
    reads = looked_at == world_.clock.steady_now() ? reads + 1 : 1;
    looked_at = world_.clock.steady_now();
    if (reads == 2 && !woken && !a_.believes_in_its_lease()) {
      woken = true;  // between the two reads of a look
      a_.tend();
    }
  });
  for (int i = 0; i < 50 && !woken; ++i) {
    watch(100ms);
  }
  ASSERT_TRUE(woken);
  EXPECT_EQ(world_.owners().at(0), "a/1");
  EXPECT_TRUE(a_.believes_in_its_lease());
}

TEST_F(OwnerWatch, AHostIsNotTakenForDeadBecauseTheAnswerWasLongUnderWay) {
  pass_until_a_beats();
  watch(8s);
  bool late = false;
  b_.wire().after([&](const dynamo::HttpRequest& request) {
    if (!late && reads_consistently(request) && request.body.find("@hosts") != std::string::npos) {
      late = true;
      a_.tend();  // in time
      world_.clock.advance(4s);
    }
  });
  world_.add("c/1");  // so that there is something to look at
  watch(1s);
  ASSERT_TRUE(late);
  EXPECT_EQ(world_.owners().at(0), "a/1");
  EXPECT_TRUE(a_.believes_in_its_lease());
}

}  // namespace
}  // namespace sluice::test
