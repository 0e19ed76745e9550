// SQS's limits, as a job keeps them: how long a lease may last, and what a claim at the limit in flight is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/work/job_threads.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/sim_queues.hpp"
#include "tests/work/flow_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""s;

JobFlow::Settings at_most(Duration lease) {
  JobFlow::Settings settings = FlowRig::settings();
  settings.leases.front().longest = lease;
  return settings;
}

TEST(LeaseLimit, NothingIsExtendedBeyondItAndTheHandlerIsTold) {
  FlowRig rig(1, at_most(2min), FlowRig::job(), 1h);
  rig.poll(1);
  ASSERT_NE(rig.start(0), nullptr);
  const SteadyTime claimed = rig.now();
  SteadyTime leased = claimed + 30s;
  while (rig.now() < claimed + 118s) {
    rig.pass(1s);
    if (rig.extend() > 0) {
      leased = rig.now() + 30s;
    }
    EXPECT_FALSE(rig.batches[0].stop_requested()) << (rig.now() - claimed) / 1s;
  }
  EXPECT_GT(leased, claimed + 90s);
  EXPECT_LE(leased, claimed + 2min);
  while (rig.now() < claimed + 10min) {
    rig.pass(1s);
    EXPECT_EQ(rig.extend(), 0U);
  }
  EXPECT_FALSE(rig.batches[0].attempt().extend(1s)) << "it knows that its lease is gone";
}

TEST(LeaseLimit, EachQueueOfAJobHasItsOwn) {
  JobFlow::Settings settings = FlowRig::settings();
  settings.leases = {{30s, 1min}, {30s, 10min}};
  FlowRig rig(2, settings, FlowRig::job(), 1h);
  auto claimed = rig.messages(2);
  claimed.deliveries[1].receipt.part = 1;
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 1U);
  rig.flow.claimed(std::move(claimed), rig.now(), rig.effects);
  ASSERT_NE(rig.start(0), nullptr);
  ASSERT_NE(rig.start(1), nullptr);
  for (int i = 0; i < 120; ++i) {
    rig.pass(1s);
    rig.extend();
  }
  std::vector<std::string> held;
  for (std::size_t i = 0; i < 30; ++i) {
    rig.pass(1s);
    auto order = rig.flow.next_extension(rig.now(), rig.effects);
    for (const Task* task : order.tasks) {
      held.push_back(task->message.id);
    }
    if (!order.tasks.empty()) {
      rig.flow.extended(order, rig.extensions(order, queue::SettleStatus::applied), rig.now(), rig.effects);
    }
  }
  EXPECT_FALSE(held.empty());
  EXPECT_THAT(held, ::testing::Each("m-1")) << "the first one's minute is over, the second one has ten";
}

TEST(LeaseLimit, EachQueueHasItsOwn) {
  const LeaseTerms terms(std::vector<QueueLease>{{30s, 2min}, {60s, 2min}});
  EXPECT_EQ(terms.visibility(), Duration(30s));
  Task task;
  task.part = 1;
  task.claimed_at = SteadyTime(1h);
  EXPECT_FALSE(terms.used_up(task, task.claimed_at + 60s));
  EXPECT_TRUE(terms.used_up(task, task.claimed_at + 61s)) << "another minute would go beyond two";
}

TEST(LeaseLimit, TheKeeperSleepsOnceThereIsNothingToExtend) {
  FlowRig rig(1, at_most(1min), FlowRig::job(), 1h);
  rig.poll(1);
  rig.start(0);
  for (int i = 0; i < 100; ++i) {
    rig.pass(1s);
    rig.extend();
  }
  const auto order = rig.flow.next_extension(rig.now(), rig.effects);
  EXPECT_TRUE(order.tasks.empty());
  EXPECT_GT(order.wake, rig.now()) << "it would go round without a pause";
}

TEST(LeaseLimit, WhatIsFinishedAndCannotBeWrittenIsNotExtendedBeyondItEither) {
  FlowRig rig(1, at_most(1min));
  rig.poll(1);
  rig.start(0);
  rig.finish(0);
  const SteadyTime claimed = rig.now();
  SteadyTime extended = claimed;
  while (rig.now() < claimed + 4min) {
    rig.settle(queue::SettleStatus::failed);
    if (rig.extend() > 0) {
      extended = rig.now();
    }
    rig.pass(1s);
  }
  EXPECT_LE(extended + 30s, claimed + 1min);
}

TEST(InFlightLimit, AClaimAtItIsNoFailureOfTheJob) {
  test::FakeClock clock;
  SeededRandom random(1);
  test::SimQueues sim(clock, random);
  test::Desk desk(sim);
  const std::vector<queue::NewMessage> batch{{.id = "a"}, {.id = "b"}, {.id = "c"}};
  desk.send("orders", batch, Deadline::never());
  auto source = sim.open_source({"orders"});
  ClaimCall call{.source = **source, .visibility = 30s, .clock = clock, .rules = {.max_in_flight = 2}};
  EXPECT_EQ(call.make({.count = 3})->deliveries.size(), 2U);
  const auto held = call.make({.count = 3});
  ASSERT_TRUE(held);
  EXPECT_TRUE(held->deliveries.empty());
}

}  // namespace
}  // namespace sluice::work
