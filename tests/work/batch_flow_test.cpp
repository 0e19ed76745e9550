// Batches and asynchronous handlers in a job's flow, on one thread with a clock that stands still.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/work/flow_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using plugin::OutcomeStatus;
using ::testing::HasSubstr;
using Running = WorkerBatch::Running;

JobFlow::Settings batches_of(std::size_t most, Duration wait = {}) {
  auto settings = FlowRig::settings();
  settings.style = {.kind = plugin::HandlerKind::batch, .max_batch = most, .max_wait = wait};
  return settings;
}

/// One worker of a batch handler.
struct BatchRig : FlowRig {
  explicit BatchRig(std::size_t most, Duration wait = {}) : FlowRig(1, batches_of(most, wait)) {}

  std::vector<Running*> start() {
    std::vector<Running*> call;
    if (flow.deal(0, now(), effects)) {
      while (Running* const run = batches[0].WorkerBatch::next(now())) {
        call.push_back(run);
      }
    }
    return call;
  }
  void end(const std::vector<Running*>& call, OutcomeStatus status) {
    for (Running* const run : call) {
      batches[0].finish(*run, {status, {}, {}}, now(), call.size());
    }
    flow.collect(0, now(), effects);
  }
};

TEST(BatchFlow, GoesBeforeWhatWaitsWouldBePutBackForItsLease) {
  BatchRig rig(100, 60s);
  rig.poll(3);
  rig.pass(7s);
  EXPECT_TRUE(rig.start().empty()) << "others may come";
  rig.pass(1s);
  EXPECT_EQ(rig.extend(), 0U);
  EXPECT_EQ(rig.start().size(), 3U);
}

TEST(BatchFlow, ClaimsAndDealsWholeBatches) {
  BatchRig rig(100);
  EXPECT_EQ(rig.poll(100), 100U) << "there is room for a batch before a handler has ever run";
  const auto call = rig.start();
  EXPECT_EQ(call.size(), 100U);
  rig.pass(1s);
  rig.end(call, OutcomeStatus::done);
  EXPECT_EQ(rig.settle(), 100U);
  EXPECT_EQ(rig.account().done, 100U);
}

TEST(BatchFlow, TakesWhatIsThereUnlessItMayWait) {
  BatchRig rig(100);
  rig.poll(3);
  EXPECT_EQ(rig.start().size(), 3U);
}

TEST(BatchFlow, WaitsForTheRestOfABatchAndNoLonger) {
  BatchRig rig(10, 50ms);
  rig.poll(3);
  EXPECT_FALSE(rig.flow.deal(0, rig.now(), rig.effects));
  EXPECT_EQ(rig.effects.deal_again, rig.now() + 50ms);
  EXPECT_TRUE(rig.flow.has_work(SeatKind::worker)) << "somebody is to wait for it";
  EXPECT_FALSE(rig.flow.has_work(SeatKind::worker, rig.now() + 50ms)) << "who does is not called again";
  rig.pass(49ms);
  EXPECT_TRUE(rig.start().empty());
  rig.pass(1ms);
  EXPECT_EQ(rig.start().size(), 3U);
}

TEST(BatchFlow, DoesNotWaitUntilItsLeasesAreHalfOver) {
  auto settings = batches_of(10, 60s);
  settings.leases = {{.visibility = 20s}};
  FlowRig rig(1, settings);
  rig.poll(3);
  rig.pass(4s);
  EXPECT_FALSE(rig.flow.deal(0, rig.now(), rig.effects));
  EXPECT_EQ(rig.effects.deal_again, rig.now() + 1s);
  rig.pass(1s);
  rig.extend();
  EXPECT_TRUE(rig.flow.deal(0, rig.now(), rig.effects)) << "or they would go back and come again for ever";
}

TEST(BatchFlow, AFullBatchDoesNotWait) {
  BatchRig rig(10, 50ms);
  rig.poll(6);
  rig.pass(1ms);
  EXPECT_GE(rig.poll(4), 4U) << "what waits leaves room for the rest of the batch";
  EXPECT_EQ(rig.start().size(), 10U);
}

TEST(BatchFlow, ADrainReleasesWhatWaitsForItsBatch) {
  BatchRig rig(10, 50ms);
  rig.poll(3);
  rig.flow.drain().begin(rig.now(), rig.now() + 10s, rig.effects);
  EXPECT_EQ(rig.settle(), 3U);
  EXPECT_EQ(rig.account().released, 3U);
}

TEST(BatchFlow, EachMessageHasItsOwnOutcome) {
  BatchRig rig(10);
  rig.poll(3);
  const auto call = rig.start();
  ASSERT_EQ(call.size(), 3U);
  rig.batches[0].finish(*call[0], {OutcomeStatus::done, {}, {}}, rig.now(), 3);
  rig.batches[0].finish(*call[1], {OutcomeStatus::fault, {}, "no"}, rig.now(), 3);
  rig.batches[0].finish(*call[2], {OutcomeStatus::reject, {}, "never"}, rig.now(), 3);
  rig.flow.collect(0, rig.now(), rig.effects);
  EXPECT_EQ(rig.settle(), 3U);
  EXPECT_EQ(rig.account().done, 1U);
  EXPECT_EQ(rig.account().retried, 1U);
  EXPECT_EQ(rig.account().rejected, 1U);
}

TEST(BatchFlow, ADrainStopsTheWholeCallAndACancelOneMessage) {
  BatchRig rig(10);
  rig.poll(2);
  const auto call = rig.start();
  EXPECT_TRUE(rig.flow.cancel("m-1", {}));
  EXPECT_FALSE(call[0]->attempt.stop_requested());
  EXPECT_TRUE(call[1]->attempt.stop_requested());
  rig.flow.drain().begin(rig.now(), rig.now() + 10s, rig.effects);
  EXPECT_TRUE(call[0]->attempt.stop_requested());
}

TEST(BatchFlow, OneThatDoesNotReturnCostsNoAttemptAndItsMessagesRunAlone) {
  BatchRig rig(10);
  rig.poll(2);
  ASSERT_EQ(rig.start().size(), 2U);
  rig.pass(66s);
  rig.extend();
  EXPECT_EQ(rig.stuck(), 2U);
  EXPECT_EQ(rig.settle(), 2U);
  EXPECT_EQ(rig.account().released, 2U);
  for (const queue::Completion& completion : rig.last) {
    EXPECT_EQ(completion.action, queue::CompletionAction::release);
    EXPECT_EQ(completion.marks, queue::core::kSuspect);
  }
  EXPECT_EQ(rig.effects.hire_workers, 1U) << "its worker is lost";
}

TEST(BatchFlow, TheEndOfItsProcessMakesAllOfThemSuspects) {
  BatchRig rig(10);
  rig.poll(3);
  rig.end(rig.start(), OutcomeStatus::crashed);
  EXPECT_EQ(rig.settle(), 3U);
  EXPECT_EQ(rig.account().released, 3U);
  EXPECT_EQ(rig.last[2].marks, queue::core::kSuspect);
  // One that ran alone is to blame.
  rig.poll(1);
  rig.end(rig.start(), OutcomeStatus::crashed);
  rig.settle();
  EXPECT_EQ(rig.account().retried, 1U);
}

TEST(BatchFlow, ACallIsAsLateAsTheLastOfItsTimeouts) {
  BatchRig rig(10);
  rig.poll(2);
  const auto call = rig.start();
  rig.pass(30s);
  EXPECT_TRUE(call[1]->attempt.extend(60s));
  rig.pass(36s);
  rig.extend();
  EXPECT_EQ(rig.stuck(), 0U);
  rig.pass(30s);
  rig.extend();
  EXPECT_EQ(rig.stuck(), 2U);
}

/// The one worker of an asynchronous handler.
struct AsyncRig : FlowRig {
  static JobFlow::Settings async() {
    auto wanted = settings();
    wanted.style = {.kind = plugin::HandlerKind::async};
    return wanted;
  }
  explicit AsyncRig(std::uint32_t concurrency) : FlowRig(0, async(), with_workers(concurrency, job())) { enlist(); }

  std::vector<Running*> begin() {
    std::vector<Running*> begun;
    if (flow.deal(0, now(), effects)) {
      while (Running* const run = batches[0].WorkerBatch::next(now())) {
        batches[0].left(*run, *run->task);
        begun.push_back(run);
      }
    }
    return begun;
  }
  void complete(Running& run, OutcomeStatus status = OutcomeStatus::done) {
    if (batches[0].finish(run, {status, {}, {}}, now(), 1, WorkerBatch::Finisher::other)) {
      flow.collect(0, now(), effects, JobFlow::Then::is_elsewhere);
    }
  }
};

/// As `FlowRig` makes its job's workers of their number.
TEST(AsyncFlow, OneWorkerHasAsManyAtWorkAsTheJobsConcurrency) {
  AsyncRig rig(100);
  EXPECT_EQ(rig.poll(100), 100U);
  const auto begun = rig.begin();
  EXPECT_EQ(begun.size(), 100U);
  EXPECT_EQ(rig.activity().running.size(), 100U);
  rig.effects = {};
  rig.flow.wake(rig.effects);
  EXPECT_EQ(rig.poll(0), 0U) << "there is no room for more";
  EXPECT_TRUE(rig.begin().empty());
  rig.pass(1s);
  rig.complete(*begun[7]);
  EXPECT_EQ(rig.poll(5), 1U) << "one has made room";
  EXPECT_EQ(rig.effects.workers, 1U);
}

TEST(AsyncFlow, EndsInAnyOrderAndBeginsWithMoreMeanwhile) {
  AsyncRig rig(2);
  rig.poll(2);
  auto first = rig.begin();
  ASSERT_EQ(first.size(), 2U);
  rig.pass(1s);
  rig.complete(*first[1]);
  rig.flow.wake(rig.effects);
  rig.poll(1);
  const auto second = rig.begin();
  ASSERT_EQ(second.size(), 1U);
  rig.complete(*second[0]);
  rig.complete(*first[0]);
  EXPECT_EQ(rig.settle() + rig.settle(), 3U);
  EXPECT_EQ(rig.account().done, 3U);
}

TEST(AsyncFlow, ItsWorkerSleepsWhileThereIsNoPlaceForWhatWaits) {
  AsyncRig rig(2);
  rig.poll(2);
  for (Running* const run : rig.begin()) {
    rig.pass(1ms);
    rig.complete(*run);
  }
  ASSERT_GT(rig.poll(10), 2U) << "quick ones are claimed ahead";
  const auto begun = rig.begin();
  ASSERT_EQ(begun.size(), 2U);
  rig.effects = {};
  EXPECT_FALSE(rig.flow.deal(0, rig.now(), rig.effects));
  EXPECT_EQ(rig.effects.deal_again, SteadyTime::max());
  EXPECT_FALSE(rig.flow.has_work(SeatKind::worker));
  rig.complete(*begun[0]);
  EXPECT_EQ(rig.effects.workers, 1U);
  EXPECT_TRUE(rig.flow.has_work(SeatKind::worker));
}

TEST(AsyncFlow, OnlyTheFirstOfManyCompletionsCallsTheFlow) {
  AsyncRig rig(3);
  rig.poll(3);
  const auto begun = rig.begin();
  using Finisher = WorkerBatch::Finisher;
  EXPECT_TRUE(rig.batches[0].finish(*begun[0], {OutcomeStatus::done, {}, {}}, rig.now(), 1, Finisher::other));
  EXPECT_FALSE(rig.batches[0].finish(*begun[1], {OutcomeStatus::done, {}, {}}, rig.now(), 1, Finisher::other));
  EXPECT_FALSE(rig.batches[0].finish(*begun[2], {OutcomeStatus::done, {}, {}}, rig.now(), 1, Finisher::worker));
  rig.flow.collect(0, rig.now(), rig.effects, JobFlow::Then::is_elsewhere);
  EXPECT_EQ(rig.settle(), 3U);
}

TEST(AsyncFlow, OneThatIsNeverCompletedLosesItsPlaceAndNoWorker) {
  AsyncRig rig(10);
  rig.poll(2);
  const auto begun = rig.begin();
  ASSERT_EQ(begun.size(), 2U);
  rig.pass(60s);
  EXPECT_TRUE(begun[0]->attempt.stop_requested());
  rig.complete(*begun[1]);
  rig.pass(6s);
  rig.extend();
  EXPECT_EQ(rig.stuck(), 1U);
  EXPECT_EQ(rig.effects.hire_workers, 0U);
  EXPECT_EQ(rig.settle(), 2U);
  EXPECT_EQ(rig.account().retried, 1U);
  ASSERT_FALSE(rig.last.empty());
  EXPECT_THAT(rig.last.back().failure.error, HasSubstr("did not complete the message within 66s"));
  // Late as it is, it does no harm.
  rig.complete(*begun[0]);
  EXPECT_EQ(rig.stuck(), 0U);
  EXPECT_EQ(rig.account().retried, 1U);
  rig.flow.wake(rig.effects);
  EXPECT_EQ(rig.poll(10), 10U);
}

TEST(AsyncFlow, OneWhoseBeginDoesNotReturnLosesItsWorker) {
  AsyncRig rig(10);
  rig.poll(3);
  ASSERT_TRUE(rig.flow.deal(0, rig.now(), rig.effects));
  Running* const done = rig.batches[0].WorkerBatch::next(rig.now());
  rig.batches[0].left(*done, *done->task);
  rig.pass(1s);
  Running* const hung = rig.batches[0].WorkerBatch::next(rig.now());
  ASSERT_NE(hung, nullptr);
  rig.complete(*done);
  rig.pass(66s);
  rig.extend();
  EXPECT_EQ(rig.stuck(), 1U);
  EXPECT_EQ(rig.effects.hire_workers, 1U);
  EXPECT_EQ(rig.batches[0].counts().unstarted, 0U) << "what it had not begun with waits for the next worker";
}

TEST(AsyncFlow, OneWhoseBeginDoesNotReturnAfterOthersHaveCompletedItLosesItsWorker) {
  AsyncRig rig(10);
  rig.poll(1);
  ASSERT_TRUE(rig.flow.deal(0, rig.now(), rig.effects));
  Running* const hung = rig.batches[0].WorkerBatch::next(rig.now());
  ASSERT_NE(hung, nullptr);
  rig.pass(1s);
  EXPECT_EQ(rig.activity().lingering, 0U) << "it is at work";
  rig.complete(*hung);
  EXPECT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.activity().lingering, 1U);
  EXPECT_THAT(left_behind(rig.activity(), rig.now()),
              testing::ElementsAre("1 handler had not returned although the message was completed"));
  rig.pass(63s);
  rig.extend();
  EXPECT_EQ(rig.effects.hire_workers, 0U) << "it may return";
  rig.flow.wake(rig.effects);
  EXPECT_EQ(rig.poll(1), 10U);
  rig.pass(2s);
  rig.effects = {};
  rig.extend();
  EXPECT_EQ(rig.effects.hire_workers, 1U);
  ASSERT_FALSE(rig.effects.lines.empty());
  EXPECT_THAT(rig.effects.lines.front().text, HasSubstr("does not return although its message is completed"));
  const std::uint32_t next = rig.enlist();
  EXPECT_TRUE(rig.flow.deal(next, rig.now(), rig.effects)) << "what waits has a worker again";
}

TEST(AsyncFlow, OneWhoseBeginReturnsAfterOthersHaveCompletedItGoesOn) {
  AsyncRig rig(10);
  rig.poll(1);
  ASSERT_TRUE(rig.flow.deal(0, rig.now(), rig.effects));
  Running* const slow = rig.batches[0].WorkerBatch::next(rig.now());
  const Task& task = *slow->task;
  rig.complete(*slow);
  EXPECT_EQ(rig.activity().lingering, 1U);
  rig.batches[0].left(*slow, task);
  EXPECT_EQ(rig.activity().lingering, 0U);
  EXPECT_EQ(rig.batches[0].WorkerBatch::next(rig.now()), nullptr);
  rig.flow.collect(0, rig.now(), rig.effects);
  rig.pass(100s);
  rig.extend();
  EXPECT_EQ(rig.effects.hire_workers, 0U);
  EXPECT_GE(rig.poll(1), 10U);
}

TEST(AsyncFlow, WhatEndedBeforeABeginHungIsWritten) {
  AsyncRig rig(10);
  rig.poll(2);
  ASSERT_TRUE(rig.flow.deal(0, rig.now(), rig.effects));
  Running* const done = rig.batches[0].WorkerBatch::next(rig.now());
  // Its worker is to collect it, and never comes back.
  rig.batches[0].finish(*done, {OutcomeStatus::done, {}, {}}, rig.now(), 1, WorkerBatch::Finisher::worker);
  ASSERT_NE(rig.batches[0].WorkerBatch::next(rig.now()), nullptr);
  rig.pass(66s);
  rig.extend();
  EXPECT_EQ(rig.stuck(), 1U);
  EXPECT_EQ(rig.settle() + rig.settle(), 2U);
  EXPECT_EQ(rig.account().done, 1U);
}

TEST(AsyncFlow, TooManyOfThemEndTheBeginning) {
  AsyncRig rig(4);
  rig.poll(4);
  ASSERT_EQ(rig.begin().size(), 4U);
  rig.pass(66s);
  rig.extend();
  EXPECT_EQ(rig.stuck(), 4U);
  EXPECT_TRUE(rig.activity().out_of_workers);
  rig.flow.wake(rig.effects);
  EXPECT_EQ(rig.poll(1), 0U);
}

TEST(AsyncFlow, ADrainStopsThemAllAndReleasesWhatDoesNotEnd) {
  AsyncRig rig(10);
  rig.poll(3);
  const auto begun = rig.begin();
  rig.flow.drain().begin(rig.now(), rig.now() + 10s, rig.effects);
  for (Running* const run : begun) {
    EXPECT_TRUE(run->attempt.stop_requested());
  }
  rig.complete(*begun[0], OutcomeStatus::release);
  rig.pass(9s);
  EXPECT_TRUE(rig.flow.drain().step(rig.now(), rig.effects));
  EXPECT_EQ(rig.settle() + rig.settle(), 3U);
  EXPECT_EQ(rig.account().released, 3U);
  EXPECT_EQ(rig.flow.drain().abandoned().size(), 2U);
  EXPECT_FALSE(rig.flow.drain().step(rig.now(), rig.effects)) << "it is over";
}

TEST(AsyncFlow, ALostLeaseStopsItsMessageAlone) {
  AsyncRig rig(10);
  rig.poll(2);
  const auto begun = rig.begin();
  const queue::Receipt lost = begun[1]->task->lease.receipt;
  rig.flow.taken_back({&lost, 1}, rig.now(), rig.effects);
  EXPECT_FALSE(begun[0]->attempt.stop_requested());
  EXPECT_TRUE(begun[1]->attempt.stop_requested());
  EXPECT_FALSE(begun[1]->attempt.extend(1s));
}

TEST(AsyncFlow, MoreConcurrencyTakesEffectAtOnce) {
  AsyncRig rig(1);
  rig.poll(1);
  ASSERT_EQ(rig.begin().size(), 1U);
  rig.flow.steer({.workers = 3}, rig.now(), rig.effects);
  EXPECT_EQ(rig.poll(2), 2U);
  EXPECT_EQ(rig.begin().size(), 2U);
}

TEST(AsyncFlow, MoreThanThreadsAreForAsynchronousHandlers) {
  AsyncRig rig(1);
  rig.flow.steer({.workers = 5000}, rig.now(), rig.effects);
  EXPECT_EQ(rig.activity().workers, 5000U);
  EXPECT_EQ(rig.effects.hire_workers, 0U);
  FlowRig plain(1);
  plain.flow.steer({.workers = 5000}, plain.now(), plain.effects);
  EXPECT_EQ(plain.activity().workers, config::kMaxConcurrency);
}

TEST(WorkerBatch, ItsWorkerWaitsForThoseWhoAreStillThere) {
  const test::FakeClock clock;
  WorkerBatch batch(clock, 10s);
  Task task;
  batch.deal(task, SteadyTime::max());
  Running* const run = batch.next(clock.steady_now());
  std::jthread other([&] {
    batch.enter();
    batch.finish(*run, {OutcomeStatus::done, {}, {}}, clock.steady_now(), 1, WorkerBatch::Finisher::other);
    batch.leave();
  });
  batch.wait_until_alone();
  EXPECT_EQ(batch.counts().busy(), 0U);
}

}  // namespace
}  // namespace sluice::work
