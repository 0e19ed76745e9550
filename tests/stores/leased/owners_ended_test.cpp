// Hosts of which their machine knows that they have ended: nobody waits for their leases.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "host/stores/core/outcomes.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "tests/stores/leased/owner_world.hpp"

namespace sluice::test {
namespace {

using queue::CompletionAction;
using queue::Delivery;
using queue::SettleStatus;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// What a crash ledger's recovery says, by that host's way to the table.
Result<void> mark(OwnerHost& by, const std::string& dead, bool settled) {
  const queue::table::QueueTable place{kOwnersQueue, kOwnersTable, "", "us-east-1"};
  return queue::leased::mark_ended(by.client(), place, dead, settled, Deadline::after(by.clock, 5s));
}

/// What a crash ledger's recovery settles: what was at work is a suspect, everything else is not.
void settle_for_the_dead(OwnerHost& by, const std::vector<Delivery>& held, const std::string& ran) {
  std::vector<queue::Completion> completions;
  for (const Delivery& delivery : held) {
    completions.push_back({.receipt = delivery.receipt, .action = CompletionAction::release});
    completions.back().marks = delivery.message.id == ran ? queue::core::kSuspect : 0;
  }
  for (const auto& result : by.settle(completions)) {
    EXPECT_EQ(result.status, SettleStatus::applied) << result.error.message();
  }
}

struct Seen {
  std::size_t suspects = 0;
  std::size_t others = 0;
};
Seen see_off(OwnerHost& host, const std::string& expected_suspect = {}) {
  Seen seen;
  for (auto claimed = host.claim(100); !claimed.empty(); claimed = host.claim(100)) {
    for (const Delivery& delivery : claimed) {
      EXPECT_EQ(delivery.message.attempt, 1U) << delivery.message.id;
      if (!expected_suspect.empty()) {
        EXPECT_EQ(delivery.suspect, delivery.message.id == expected_suspect) << delivery.message.id;
      }
      ++(delivery.suspect ? seen.suspects : seen.others);
      EXPECT_EQ(host.settle(delivery, CompletionAction::remove).status, SettleStatus::applied);
    }
  }
  return seen;
}

TEST(EndedOwners, ASuccessorTakesItsShardsAtOnceAndKnowsWhatWasAtWork) {
  OwnerWorld world({.lease = 60s});
  world.send(40);
  OwnerHost& a = world.add("a/1");
  const auto held = a.claim(10);
  ASSERT_THAT(held, SizeIs(10));
  a.kill();
  OwnerHost& next = world.add("a/2", false);
  settle_for_the_dead(next, held, held[3].message.id);
  ASSERT_TRUE(mark(next, "a/1", true));
  const SteadyTime began = world.clock.steady_now();
  next.start();
  EXPECT_EQ(world.shards_of("a/2"), 8);
  const Seen seen = see_off(next, held[3].message.id);
  EXPECT_EQ(seen.suspects, 1U);
  EXPECT_EQ(seen.others, 39U);
  EXPECT_EQ(world.clock.steady_now(), began) << "no time has passed";
  EXPECT_THAT(world.messages(), IsEmpty());
}

TEST(EndedOwners, HostsOnOtherMachinesNeedNotWaitEither) {
  OwnerWorld world({.lease = 60s});
  OwnerHost& a = world.add("a/1");
  OwnerHost& b = world.add("b/1");
  ASSERT_TRUE(world.pass_until([&] { return world.shards_of("b/1") == 4; }, 5s));
  world.send(40);
  a.kill();
  ASSERT_TRUE(mark(b, "a/1", true));
  EXPECT_TRUE(world.pass_until([&] { return world.shards_of("b/1") == 8; }, 3s));
  const Seen seen = see_off(b);
  EXPECT_EQ(seen.suspects, 0U);
  EXPECT_EQ(seen.others, 40U);
}

TEST(EndedOwners, WhereSomethingIsInDoubtTheFirstMessagesAreSuspects) {
  OwnerWorld world({.shards = 1, .lease = 60s});
  world.send(200);
  OwnerHost& a = world.add("a/1");
  world.pass(10s);
  ASSERT_THAT(a.claim(3), SizeIs(3));
  a.kill();
  OwnerHost& next = world.add("a/2", false);
  ASSERT_TRUE(mark(next, "a/1", false));
  next.start();
  EXPECT_EQ(world.shards_of("a/2"), 1);
  const Seen seen = see_off(next);
  EXPECT_EQ(seen.suspects, 116U) << "as many as the dead host had announced";
  EXPECT_EQ(seen.others, 84U);
}

TEST(EndedOwners, WhatItHadInheritedInDoubtStaysSo) {
  OwnerWorld world({.shards = 1});
  world.send(40);
  OwnerHost& a = world.add("a/1");
  ASSERT_THAT(a.claim(3), SizeIs(3));
  a.kill();
  OwnerHost& b = world.add("b/1");
  ASSERT_TRUE(world.pass_until([&] { return world.shards_of("b/1") == 1; }, 15s));
  world.pass(150s);  // until the first one's heartbeat is cleared up
  b.kill();
  OwnerHost& next = world.add("b/2", false);
  ASSERT_TRUE(mark(next, "b/1", true));
  next.start();
  EXPECT_EQ(world.shards_of("b/2"), 1) << "at once";
  EXPECT_GT(see_off(next).suspects, 0U) << "nobody knows what the first one had at work";
}

TEST(EndedOwners, OneThatLivesAllTheSameStopsAndTakesItsShardsAnew) {
  OwnerWorld world({});
  world.send(40);
  OwnerHost& a = world.add("a/1");
  ASSERT_THAT(a.claim(10), SizeIs(10));
  ASSERT_TRUE(mark(a, "a/1", true));
  world.pass(4s);
  EXPECT_THAT(a.out, IsEmpty()) << "it was told that it has lost them";
  EXPECT_THAT(a.warnings, Contains(HasSubstr("declared this host dead in table 'sluice-queues'")));
  ASSERT_TRUE(world.pass_until([&] { return a.half().figures().shards == 8; }, 5s));
  EXPECT_EQ(world.shards_of("a/1"), 8);
  const Seen seen = see_off(a);
  EXPECT_EQ(seen.suspects + seen.others, 40U);
}

TEST(EndedOwners, AHeartbeatThatMovesMeanwhileIsNoDeadHosts) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  OwnerHost& b = world.add("b/1", false);
  world.clock.advance(4s);
  bool beaten = false;
  b.wire().before([&](const dynamo::HttpRequest& request) {
    if (!beaten && request.body.find("counter") != std::string::npos) {
      beaten = true;
      a.tend();
    }
  });
  EXPECT_FALSE(mark(b, "a/1", true));
  EXPECT_TRUE(beaten);
  EXPECT_FALSE(world.item("@hosts", "a/1")->contains("e"));
}

TEST(EndedOwners, ThereIsNothingToSayOfOneThatHasNoHeartbeatAndNothingTwice) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  EXPECT_TRUE(mark(a, "b/1", true));
  EXPECT_FALSE(world.item("@hosts", "b/1"));
  OwnerHost& dead = world.add("c/1");
  dead.kill();
  EXPECT_TRUE(mark(a, "c/1", false));
  EXPECT_TRUE(mark(a, "c/1", true));
  EXPECT_FALSE(*dynamo::find<bool>(*world.item("@hosts", "c/1"), "e")) << "as it was said first";
}

TEST(EndedOwners, WhatIsLeftOfThemIsClearedUp) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  OwnerHost& b = world.add("b/1");
  world.pass(3s);
  a.kill();
  ASSERT_TRUE(mark(b, "a/1", true));
  world.pass(150s);
  EXPECT_FALSE(world.item("@hosts", "a/1"));
  EXPECT_EQ(world.shards_of("b/1"), 8);
}

}  // namespace
}  // namespace sluice::test
