// What operators do to a job while it runs: pause, scale, cancel. One thread, a clock that stands still.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/work/flow_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""us;
using std::chrono_literals::operator""s;
using plugin::OutcomeStatus;
using queue::CompletionAction;

class SteeredFlow : public ::testing::Test {
 protected:
  void pause(FlowRig& rig) { rig.flow.steer({.paused = true}, rig.now(), rig.effects); }
  void resume(FlowRig& rig) { rig.flow.steer({.paused = false}, rig.now(), rig.effects); }
  void scale(FlowRig& rig, std::uint32_t workers) { rig.flow.steer({.workers = workers}, rig.now(), rig.effects); }
};

TEST_F(SteeredFlow, APauseClaimsNothingAndAResumeAtOnce) {
  FlowRig rig;
  pause(rig);
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 0U);
  EXPECT_EQ(rig.flow.next_claim(rig.now()).wake, SteadyTime::max()) << "a paused job costs no request";
  rig.flow.wake(rig.effects);
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 0U);
  rig.effects = {};
  resume(rig);
  EXPECT_TRUE(rig.effects.poller);
  EXPECT_GT(rig.flow.next_claim(rig.now()).count, 0U);
}

TEST_F(SteeredFlow, APauseGivesBackWhatHasNotStarted) {
  FlowRig rig(1);
  // Fast handlers, so that messages wait in memory and in a hand.
  rig.poll(1);
  rig.start(0);
  rig.finish(0);
  rig.settle();
  ASSERT_GT(rig.poll(200), 20U);
  ASSERT_NE(rig.start(0), nullptr);
  const std::uint64_t claimed = rig.account().claimed;
  pause(rig);
  EXPECT_EQ(rig.batches[0].counts().unstarted, 0U) << "no handler starts any more";
  EXPECT_NE(rig.batches[0].view().running, nullptr) << "what runs goes on";
  EXPECT_FALSE(rig.batches[0].stop_requested());
  rig.pass(50ms);
  EXPECT_EQ(rig.settle(), claimed - 2);
  for (const queue::Completion& completion : rig.last) {
    EXPECT_EQ(completion.action, CompletionAction::release) << "without an attempt burnt";
  }
  rig.finish(0);
  EXPECT_FALSE(rig.flow.deal(0, rig.now(), rig.effects));
  rig.settle();
  EXPECT_EQ(rig.account().done, 2U);
  EXPECT_EQ(rig.account().released, claimed - 2);
}

TEST_F(SteeredFlow, WhatAClaimUnderWayBringsIntoAPauseGoesBack) {
  FlowRig rig;
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  pause(rig);
  rig.flow.claimed(rig.messages(2), rig.now(), rig.effects);
  EXPECT_FALSE(rig.flow.has_work(SeatKind::worker));
  EXPECT_FALSE(rig.flow.deal(0, rig.now(), rig.effects));
  EXPECT_EQ(rig.settle(), 2U);
  EXPECT_EQ(rig.account().released, 2U);
}

TEST_F(SteeredFlow, AStoreThatRecoversDoesNotEndAPause) {
  FlowRig rig;
  rig.poll(1);
  rig.start(0);
  pause(rig);
  rig.finish(0);
  rig.settle(queue::SettleStatus::failed);
  rig.pass(30s);
  rig.settle();
  EXPECT_FALSE(rig.flow.deal(0, rig.now(), rig.effects));
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 0U);
}

TEST_F(SteeredFlow, ADrainOfAPausedJobEnds) {
  FlowRig rig;
  rig.poll(1);
  rig.start(0);
  pause(rig);
  rig.flow.drain().begin(rig.now(), rig.now() + 10s, rig.effects);
  pause(rig);
  resume(rig);
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 0U) << "a resume does not end a drain";
  rig.finish(0);
  rig.settle();
  EXPECT_FALSE(rig.flow.drain().step(rig.now(), rig.effects));
  EXPECT_EQ(rig.account().stranded, 0U);
}

TEST_F(SteeredFlow, MoreWorkersAreHired) {
  FlowRig rig(2);
  scale(rig, 5);
  EXPECT_EQ(rig.effects.hire_workers, 3U);
  for (int i = 0; i < 3; ++i) {
    rig.enlist();
  }
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 5U);
}

TEST_F(SteeredFlow, OneThatCouldNotBeMadeIsWaitedForWithoutHaste) {
  FlowRig rig(2);
  scale(rig, 3);
  EXPECT_EQ(rig.flow.next_extension(rig.now(), rig.effects).wake, SteadyTime::max());
  rig.flow.not_made(SeatKind::worker, rig.now(), rig.effects);
  EXPECT_TRUE(rig.effects.keeper);
  rig.effects = {};
  EXPECT_EQ(rig.flow.next_extension(rig.now(), rig.effects).wake, rig.now() + 1s);
  EXPECT_FALSE(rig.effects.keeper) << "it would ask again at once, for the whole second";
  rig.pass(1s);
  rig.flow.next_extension(rig.now(), rig.effects);
  EXPECT_EQ(rig.effects.hire_workers, 1U);
}

TEST_F(SteeredFlow, IdleWorkersThatAreTooManyLeave) {
  FlowRig rig(4);
  scale(rig, 1);
  EXPECT_EQ(rig.effects.workers, 3U) << "they are woken to leave";
  int left = 0;
  for (std::uint32_t seat = 0; seat < 4; ++seat) {
    EXPECT_EQ(rig.flow.has_work(SeatKind::worker), left < 3);
    if (!rig.flow.collect(seat, rig.now(), rig.effects)) {
      EXPECT_FALSE(rig.flow.collect(seat, rig.now(), rig.effects)) << "it does not change its mind";
      rig.flow.collect(seat, rig.now(), rig.effects, JobFlow::Then::leaves);
      ++left;
    }
  }
  EXPECT_EQ(left, 3);
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 1U);
  EXPECT_EQ(rig.effects.hire_workers, 0U);
}

TEST_F(SteeredFlow, BusyWorkersThatAreTooManyFinishFirst) {
  FlowRig rig(2);
  rig.poll(2);
  rig.start(0);
  rig.start(1);
  scale(rig, 1);
  rig.batches[1].finish({OutcomeStatus::done, {}, {}}, rig.now());
  EXPECT_FALSE(rig.flow.collect(1, rig.now(), rig.effects));
  rig.flow.collect(1, rig.now(), rig.effects, JobFlow::Then::leaves);
  rig.batches[0].finish({OutcomeStatus::done, {}, {}}, rig.now());
  EXPECT_TRUE(rig.flow.collect(0, rig.now(), rig.effects));
  EXPECT_EQ(rig.settle(), 2U);
  EXPECT_EQ(rig.account().done, 2U);
}

TEST_F(SteeredFlow, UpAndDownAtOnceEndsWithWhatWasSaidLast) {
  FlowRig rig(2);
  scale(rig, 6);
  ASSERT_EQ(rig.effects.hire_workers, 4U);
  scale(rig, 3);
  for (int i = 0; i < 4; ++i) {
    rig.enlist();  // They had been asked for.
  }
  int stay = 0;
  for (std::uint32_t seat = 0; seat < 6; ++seat) {
    if (rig.flow.collect(seat, rig.now(), rig.effects)) {
      ++stay;
    } else {
      rig.flow.collect(seat, rig.now(), rig.effects, JobFlow::Then::leaves);
    }
  }
  EXPECT_EQ(stay, 3);
  EXPECT_EQ(rig.effects.hire_workers, 4U) << "nobody is hired in the place of those who left";
}

TEST_F(SteeredFlow, CancelsOnlyTheMessageThatIsMeant) {
  FlowRig rig(2);
  rig.poll(2);
  ASSERT_EQ(rig.start(0)->message.id, "m-0");
  EXPECT_FALSE(rig.flow.cancel("m-1", {})) << "it has not started";
  rig.start(1);
  EXPECT_TRUE(rig.flow.cancel("m-1", {}));
  EXPECT_FALSE(rig.batches[0].stop_requested());
  EXPECT_TRUE(rig.batches[1].stop_requested());
  EXPECT_FALSE(rig.flow.cancel("m-9", {}));
  rig.finish(1, OutcomeStatus::reject);
  rig.pass(50ms);
  rig.settle();
  EXPECT_EQ(rig.account().rejected, 1U) << "the outcome is what the handler returns";
  EXPECT_FALSE(rig.flow.cancel("m-1", {}));
}

TEST_F(SteeredFlow, CancelsTheMessageOfTheQueueThatIsMeant) {
  FlowRig rig(2);
  rig.flow.next_claim(rig.now());
  auto claimed = rig.messages(2);
  claimed.deliveries[1].message.id = "m-0";  // of another queue of the job, which has an id like it
  claimed.deliveries[1].receipt.part = 1;
  rig.flow.claimed(std::move(claimed), rig.now(), rig.effects);
  ASSERT_EQ(rig.start(0)->part, 0);
  EXPECT_FALSE(rig.flow.cancel("m-0", 1)) << "that one has not started";
  ASSERT_EQ(rig.start(1)->part, 1);
  EXPECT_TRUE(rig.flow.cancel("m-0", 1));
  EXPECT_FALSE(rig.batches[0].stop_requested());
  EXPECT_TRUE(rig.batches[1].stop_requested());
}

TEST_F(SteeredFlow, SaysWhatRuns) {
  FlowRig rig(2);
  EXPECT_TRUE(rig.activity().running.empty());
  rig.poll(2, 3);
  rig.start(1);
  rig.pass(5s);
  const auto running = rig.activity().running;
  ASSERT_EQ(running.size(), 1U);
  EXPECT_EQ(running[0].message_id, "m-0");
  EXPECT_EQ(running[0].worker, 1U);
  EXPECT_EQ(running[0].attempt, 3U);
  EXPECT_EQ(running[0].started_at, rig.now() - 5s);
  EXPECT_EQ(running[0].times_out_at, rig.now() + 55s);
  EXPECT_FALSE(running[0].stuck);
  rig.pass(70s);
  rig.extend();
  ASSERT_EQ(rig.activity().running.size(), 1U);
  EXPECT_TRUE(rig.activity().running[0].stuck);
}

TEST(HandlerTimes, TellsOfTheTimeBetween) {
  HandlerTimes before;
  before.add(1s, 1);
  HandlerTimes after = before;
  EXPECT_EQ(after.mean_since(before), Duration::zero());
  EXPECT_EQ(after.quantile_since(before, 0.95), Duration::zero());
  after.add(10ms, 95);
  after.add(100ms, 5);
  EXPECT_EQ(after.mean_since(before), 14500us);
  EXPECT_GE(after.quantile_since(before, 0.95), 10ms);
  EXPECT_LT(after.quantile_since(before, 0.95), 20ms);
  EXPECT_GE(after.quantile_since(before, 0.99), 100ms);
  EXPECT_EQ(after.slowest(), 1s);
  after.add(Duration(-5), 1);
  after.add(std::chrono::hours(24 * 365 * 100), 1);
  EXPECT_EQ(after.count(), 103U);
}

}  // namespace
}  // namespace sluice::work
