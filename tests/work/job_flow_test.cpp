#include "host/work/job_flow.hpp"

#include <gtest/gtest.h>

#include "tests/work/flow_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""us;
using plugin::OutcomeStatus;
using queue::CompletionAction;
using queue::SettleStatus;

TEST(JobFlowHandled, TellsWhatEndedWellAndCommitsNothingBeside) {
  FlowRig rig(4);
  rig.effects.follows = true;
  rig.poll(4);
  for (std::uint32_t worker = 0; worker < 4; ++worker) {
    ASSERT_NE(rig.start(worker), nullptr);
  }
  rig.finish(1);
  rig.finish(0, OutcomeStatus::retry);
  rig.finish(2, OutcomeStatus::discard);
  plugin::Outcome sends{OutcomeStatus::done, {}, {}};
  auto effects = std::make_shared<queue::Effects>();
  effects->messages.resize(1);
  sends.effects = effects;
  rig.batches[3].finish(std::move(sends), rig.now());
  rig.flow.collect(3, rig.now(), rig.effects);
  ASSERT_EQ(rig.effects.handled.size(), 2U) << "what a handler sends goes out with the settlement, which may fail";
  EXPECT_EQ(rig.effects.handled[0].id, "m-1");
  EXPECT_EQ(rig.effects.handled[1].id, "m-2");
}

TEST(JobFlowClaims, NoMoreThanFreeWorkersWhileHandlersAreUnknown) {
  FlowRig rig(3);
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 3U);
}

TEST(JobFlowClaims, ASlowPoolClaimsWhenAWorkerComesFree) {
  FlowRig rig(2);
  rig.poll(2);
  ASSERT_NE(rig.start(0), nullptr);
  ASSERT_NE(rig.start(1), nullptr);
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 0U);
  EXPECT_EQ(rig.flow.next_claim(rig.now()).wake, SteadyTime::max()) << "no wake-ups while there is no room";
  rig.pass(2s);
  rig.effects = {};
  rig.finish(0);
  rig.flow.deal(0, rig.now(), rig.effects);
  EXPECT_TRUE(rig.effects.poller) << "a free worker calls the poller";
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 1U);
}

TEST(JobFlowClaims, BacksOffWhenEmptyUpToASecondAndIsWokenAtOnce) {
  FlowRig rig;
  SteadyTime last = rig.now();
  for (int i = 0; i < 12; ++i) {
    EXPECT_GT(rig.poll(0), 0U);
    const auto order = rig.flow.next_claim(rig.now());
    EXPECT_EQ(order.count, 0U);
    EXPECT_LE(order.wake, rig.now() + 1100ms);
    last = rig.now();
    rig.pass(order.wake - rig.now());
  }
  EXPECT_GE(rig.now() - last, 1s) << "an empty queue costs at most one request a second";
  rig.poll(0);
  rig.pass(1ms);
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 0U);
  rig.flow.wake(rig.effects);
  EXPECT_TRUE(rig.effects.poller);
  EXPECT_GT(rig.poll(0), 0U);
  EXPECT_LE(rig.flow.next_claim(rig.now()).wake, rig.now() + 11ms) << "the back-off begins anew";
}

TEST(JobFlowClaims, PausesAsLongAsThePollIntervalAtMost) {
  config::JobConfig job = FlowRig::job();
  job.poll_interval = 20s;
  FlowRig rig(1, FlowRig::settings(), job);
  Duration longest{};
  for (int i = 0; i < 20; ++i) {
    EXPECT_GT(rig.poll(0), 0U);
    longest = rig.flow.next_claim(rig.now()).wake - rig.now();
    EXPECT_LE(longest, 22s);
    rig.pass(longest);
  }
  EXPECT_GE(longest, 20s);
}

TEST(JobFlowClaims, ARoleThatMayNotClaimIsADenialOnceItIsSure) {
  FlowRig rig;
  for (int failure = 1; failure <= 3; ++failure) {
    EXPECT_FALSE(rig.activity().denial) << "a token may be renewed just then";
    ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
    rig.flow.claimed(Error(ErrorCode::denied, "no dynamodb:UpdateItem"), rig.now(), rig.effects);
    rig.pass(20s);
  }
  ASSERT_TRUE(rig.activity().denial);
  EXPECT_EQ(rig.activity().denial->message(), "no dynamodb:UpdateItem");
  EXPECT_GT(rig.poll(0), 0U);
  EXPECT_FALSE(rig.activity().denial) << "it was granted";
}

TEST(JobFlowClaims, AreCutOffOnceNoneOfSeveralHasGoneWellForTenSeconds) {
  FlowRig rig;
  const auto fail = [&rig] {
    ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
    rig.flow.claimed(Error(ErrorCode::unavailable, "no way to the table"), rig.now(), rig.effects);
  };
  fail();
  rig.pass(20s);
  EXPECT_FALSE(rig.activity().cut_off) << "one may go wrong";
  EXPECT_GT(rig.poll(0), 0U);
  rig.pass(20s);
  fail();
  rig.pass(5s);
  fail();
  EXPECT_FALSE(rig.activity().cut_off);
  rig.pass(5s);
  EXPECT_TRUE(rig.activity().cut_off);
  rig.flow.steer({.paused = true}, rig.now(), rig.effects);
  EXPECT_FALSE(rig.activity().cut_off) << "nothing asks";
  rig.flow.steer({.paused = false}, rig.now(), rig.effects);
  rig.pass(20s);
  EXPECT_GT(rig.poll(0), 0U);
  EXPECT_FALSE(rig.activity().cut_off);
}

TEST(JobFlowSettlements, AreCutOffAsLongAsSomethingWaitsToBeWritten) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.finish(0);
  for (int i = 0; i < 20; ++i) {
    rig.settle(queue::SettleStatus::failed);
    rig.pass(1s);
  }
  EXPECT_TRUE(rig.activity().cut_off);
  const std::vector<queue::Receipt> gone{{"m-0", 1, 0}};
  rig.flow.taken_back(gone, rig.now(), rig.effects);
  EXPECT_EQ(rig.settle(), 0U);
  EXPECT_FALSE(rig.activity().cut_off) << "nothing asks";
}

TEST(JobFlowClaims, PollsWhenTheNextMessageIsDue) {
  FlowRig rig;
  for (int i = 0; i < 10; ++i) {
    rig.poll(0);
    rig.clock.advance(rig.flow.next_claim(rig.now()).wake - rig.now());
  }
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  rig.flow.claimed(queue::Claimed{{}, 70ms}, rig.now(), rig.effects);
  EXPECT_EQ(rig.flow.next_claim(rig.now()).wake, rig.now() + 70ms);
}

TEST(JobFlowClaims, WhatIsSaidToBeDueAndIsNotThereDoesNotKeepThePollerBusy) {
  FlowRig rig;
  const SteadyTime start = rig.now();
  int polls = 0;
  for (; rig.now() < start + 10s; ++polls) {
    ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
    rig.flow.claimed(queue::Claimed{{}, Duration(0)}, rig.now(), rig.effects);
    rig.clock.advance(rig.flow.next_claim(rig.now()).wake - rig.now());
  }
  EXPECT_LT(polls, 30);
}

TEST(JobFlowClaims, AWakeDuringAClaimIsNotForgotten) {
  FlowRig rig;
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  rig.flow.wake(rig.effects);
  rig.flow.claimed(queue::Claimed{}, rig.now(), rig.effects);
  EXPECT_FALSE(rig.activity().quiescent);
  EXPECT_GT(rig.flow.next_claim(rig.now()).count, 0U);
}

TEST(JobFlowClaims, AWakeDoesNotHammerAStoreThatFails) {
  FlowRig rig;
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  rig.flow.claimed(Error(ErrorCode::throttled, "slow down"), rig.now(), rig.effects);
  rig.flow.wake(rig.effects);
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 0U);
  rig.pass(120ms);
  EXPECT_GT(rig.flow.next_claim(rig.now()).count, 0U);
}

TEST(JobFlowClaims, AFailingStoreIsLoggedOnceAMinuteAndWhenItIsBack) {
  FlowRig rig;
  for (int i = 0; i < 20; ++i) {
    ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
    rig.flow.claimed(Error(ErrorCode::unavailable, "down"), rig.now(), rig.effects);
    rig.pass(11s);
  }
  EXPECT_EQ(rig.effects.counts.claim_failed, 20U);
  EXPECT_LE(rig.effects.lines.size(), 5U);
  EXPECT_GE(rig.effects.lines.size(), 3U);
  rig.poll(0);
  EXPECT_EQ(rig.effects.lines.back().text, "claims work again");
}

TEST(JobFlowSettlements, WorkAgainOnceEachKindIsWritten) {
  FlowRig rig;
  rig.poll(2);
  ASSERT_NE(rig.start(0), nullptr);
  ASSERT_NE(rig.start(1), nullptr);
  rig.pass(10ms);
  rig.finish(0);
  ASSERT_EQ(rig.settle(queue::SettleStatus::failed, ErrorCode::denied), 1U);
  EXPECT_EQ(rig.effects.lines.back().text, "cannot settle messages, trying again");
  rig.finish(1, OutcomeStatus::release);
  ASSERT_EQ(rig.settle(), 1U);
  EXPECT_NE(rig.effects.lines.back().text, "settlements work again") << "what is done still cannot be written";
  rig.pass(10s);
  ASSERT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.effects.lines.back().text, "settlements work again");
}

TEST(JobFlowClaims, FollowTheRateLimit) {
  config::JobConfig job = FlowRig::job();
  job.rate_limit = 10;
  job.rate_per_host = true;
  FlowRig rig(8, FlowRig::settings(), job);
  EXPECT_EQ(rig.poll(1), 1U);
  const auto order = rig.flow.next_claim(rig.now());
  EXPECT_EQ(order.count, 0U);
  EXPECT_NEAR(std::chrono::duration<double>(order.wake - rig.now()).count(), 0.1, 0.001);
}

TEST(JobFlowClaims, FollowTheHostsPartOfASharedRateLimit) {
  config::JobConfig job = FlowRig::job();
  job.rate_limit = 1'000;
  FlowRig rig(8, FlowRig::settings(), job);
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 0U) << "it has none yet";
  EXPECT_EQ(rig.flow.next_claim(rig.now()).wake, SteadyTime::max());
  EXPECT_TRUE(rig.flow.activity(rig.now()).short_of_rate);
  JobFlow::Rates::share(rig.flow, {.rate = 10, .credit = 1, .until = rig.now() + 1s}, rig.now(), rig.effects);
  EXPECT_TRUE(rig.effects.poller);
  EXPECT_FALSE(rig.flow.activity(rig.now()).short_of_rate);
  EXPECT_EQ(rig.poll(1), 1U);
  const auto order = rig.flow.next_claim(rig.now());
  EXPECT_EQ(order.count, 0U);
  EXPECT_NEAR(std::chrono::duration<double>(order.wake - rig.now()).count(), 0.1, 0.001);
  rig.pass(1s);
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 0U) << "its lease has ended, whatever it has saved";
  JobFlow::Rates::share(rig.flow, {}, rig.now(), rig.effects);
  JobFlow::Rates::share(rig.flow, {.rate = 10, .until = rig.now() + 1s}, rig.now(), rig.effects);
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 0U) << "a part that was given back leaves nothing";
}

TEST(JobFlowClaims, StopWhenTheStoreNoLongerSettles) {
  FlowRig rig(4);
  std::size_t claimed = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto order = rig.flow.next_claim(rig.now());
    if (order.count == 0) {
      break;
    }
    claimed += order.count;
    rig.flow.claimed(rig.messages(order.count), rig.now(), rig.effects);
    for (std::uint32_t worker = 0; rig.flow.has_work(SeatKind::worker); worker = (worker + 1) % 4) {
      rig.flow.deal(worker, rig.now(), rig.effects);
      while (rig.batches[worker].next(rig.now()) != nullptr) {
        rig.batches[worker].finish({OutcomeStatus::done, {}, {}}, rig.now());
      }
      rig.flow.collect(worker, rig.now(), rig.effects);
    }
  }
  EXPECT_EQ(claimed, kMaxHeld);
  EXPECT_EQ(rig.flow.in_flight().size(), kMaxHeld);
  EXPECT_EQ(rig.settle(), kMaxSettleBatch);
  EXPECT_GT(rig.flow.next_claim(rig.now()).count, 0U);
}

TEST(JobFlowWork, AHandfulThatIsLateIsTakenAway) {
  FlowRig rig(2);
  // The flow learns that handlers are fast.
  rig.poll(2);
  rig.start(0);
  rig.pass(1us);
  rig.finish(0);
  rig.start(0);
  rig.finish(0);
  while (rig.settle() > 0) {
  }
  rig.poll(40);
  ASSERT_TRUE(rig.flow.deal(0, rig.now(), rig.effects));
  ASSERT_GT(rig.batches[0].counts().unstarted, 1U);
  // One is done, the next one takes long.
  rig.batches[0].next(rig.now());
  rig.batches[0].finish({OutcomeStatus::done, {}, {}}, rig.now());
  rig.batches[0].next(rig.now());
  rig.pass(kLateHandful);
  rig.effects = {};
  rig.flow.next_extension(rig.now(), rig.effects);
  EXPECT_EQ(rig.batches[0].counts().unstarted, 0U);
  EXPECT_GT(rig.effects.workers, 0U) << "others are called for what was taken away";
  rig.pass(kSettleLinger);
  EXPECT_EQ(rig.settle(), 1U) << "what was done is settled meanwhile";
  EXPECT_TRUE(rig.flow.deal(1, rig.now(), rig.effects));
}

TEST(JobFlowWork, PoisonIsSettledWithoutAWorker) {
  FlowRig rig;
  rig.poll(2, 4);
  EXPECT_FALSE(rig.flow.has_work(SeatKind::worker));
  EXPECT_EQ(rig.effects.counts.exhausted, 2U);
  EXPECT_EQ(rig.settle(), 2U);
  EXPECT_EQ(rig.last[0].action, CompletionAction::dead_letter);
  EXPECT_EQ(rig.last[0].failure.failed_at, rig.clock.wall_now());
  EXPECT_EQ(rig.account().rejected, 2U);
}

TEST(JobFlowWork, WhatIsClaimedTooSlowlyIsPutBackUnseen) {
  FlowRig rig;
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  queue::Claimed late = rig.messages(1);
  rig.pass(29500ms);
  rig.flow.claimed(std::move(late), rig.now(), rig.effects);
  EXPECT_EQ(rig.start(0), nullptr) << "it must not start with a lease that is over";
  rig.flow.collect(0, rig.now(), rig.effects);
  EXPECT_EQ(rig.settle(), 1U) << "the receipt fences the write";
  EXPECT_EQ(rig.last[0].action, CompletionAction::release);
  EXPECT_EQ(rig.account().released, 1U);
}

// A handler that gives everything back would otherwise have its messages again the moment they are written.
TEST(JobFlowWork, AFailureIsLoggedByWhatItComesTo) {
  const auto logged = [](plugin::OutcomeStatus status, std::uint32_t attempt, config::DeadLetterPolicy policy) {
    config::JobConfig job = FlowRig::job();
    job.dead_letter = policy;
    FlowRig rig(1, FlowRig::settings(), job);
    rig.poll(1, attempt);
    rig.start(0);
    rig.effects.lines.clear();
    rig.finish(0, status);
    return rig.effects.lines.size() == 1 ? std::string(rig.effects.lines[0].text) : std::string("not one line");
  };
  using plugin::OutcomeStatus;
  const auto move = config::DeadLetterPolicy::move;
  EXPECT_EQ(logged(OutcomeStatus::retry, 1, move), "to be retried");
  EXPECT_EQ(logged(OutcomeStatus::retry, 3, move), "not retried after the last attempt, the message goes to the DLQ");
  EXPECT_EQ(logged(OutcomeStatus::retry, 3, config::DeadLetterPolicy::discard),
            "not retried after the last attempt, the message is discarded");
  EXPECT_EQ(logged(OutcomeStatus::retry, 3, config::DeadLetterPolicy::keep), "to be retried");
  EXPECT_EQ(logged(OutcomeStatus::fault, 2, move), "the handler failed");
  EXPECT_EQ(logged(OutcomeStatus::fault, 3, move),
            "the handler failed in the last attempt, the message goes to the DLQ");
}

TEST(JobFlow, ClaimsMoreSlowlyWhileEverythingIsGivenBack) {
  FlowRig rig(1);
  Duration waited{};
  for (int round = 0; round < 20; ++round) {
    ASSERT_GT(rig.poll(1), 0U) << round;
    rig.start(0);
    rig.finish(0, plugin::OutcomeStatus::release);
    rig.settle();
    rig.flow.wake(rig.effects);  // as the release in the store does
    while (rig.flow.next_claim(rig.now()).count == 0) {
      const SteadyTime wake = rig.flow.next_claim(rig.now()).wake;
      ASSERT_GT(wake, rig.now());
      waited += wake - rig.now();
      rig.pass(wake - rig.now());
    }
    rig.flow.claimed(queue::Claimed{}, rig.now(), rig.effects);
    rig.pass(std::chrono::seconds(2));
  }
  EXPECT_GT(waited, std::chrono::seconds(5));
}

TEST(JobFlow, OneMessageGivenBackLeavesNoWakeUnheard) {
  config::JobConfig job = FlowRig::job();
  job.poll_interval = std::chrono::seconds(20);
  FlowRig rig(1, FlowRig::settings(), job);
  rig.poll(1);
  rig.start(0);
  rig.finish(0, plugin::OutcomeStatus::release);
  rig.settle();
  for (int i = 0; i < 12; ++i) {
    EXPECT_GT(rig.poll(0), 0U) << "another host has it";
    rig.pass(rig.flow.next_claim(rig.now()).wake - rig.now());
  }
  EXPECT_GT(rig.poll(0), 0U);
  EXPECT_GT(rig.flow.next_claim(rig.now()).wake, rig.now() + std::chrono::seconds(10));
  rig.flow.wake(rig.effects);
  EXPECT_GT(rig.flow.next_claim(rig.now()).count, 0U);
}

TEST(JobFlow, OneMessageGivenBackAmongOthersDoesNotSlowTheNextClaims) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.finish(0, plugin::OutcomeStatus::release);
  rig.poll(1);
  rig.start(0);
  rig.finish(0);
  rig.pass(std::chrono::milliseconds(20));
  for (int round = 0; round < 3; ++round) {
    EXPECT_GT(rig.poll(1), 0U) << round;
    rig.start(0);
    rig.finish(0);
  }
}

TEST(JobFlowLeases, AreExtendedAtHalfAndUsedFromThenOn) {
  FlowRig rig(1, FlowRig::settings(), FlowRig::job(), Duration(0));
  rig.poll(1);
  rig.start(0);
  EXPECT_EQ(rig.extend(), 0U);
  EXPECT_LE(rig.flow.next_extension(rig.now(), rig.effects).wake, rig.now() + 15s);
  for (int i = 0; i < 20; ++i) {
    rig.pass(15s);
    EXPECT_EQ(rig.extend(), 1U) << i;
  }
  rig.finish(0);
  ASSERT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.last[0].receipt.version, 21);
  EXPECT_EQ(rig.flow.in_flight().size(), 0U);
}

TEST(JobFlowLeases, ASettlementWaitsForTheReceiptThatIsOnItsWay) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.pass(15s);
  auto order = rig.flow.next_extension(rig.now(), rig.effects);
  ASSERT_EQ(order.tasks.size(), 1U);
  rig.finish(0);
  EXPECT_EQ(rig.settle(), 0U) << "the old receipt is void once the extension is through";
  auto results = rig.extensions(order, SettleStatus::applied);
  rig.effects = {};
  rig.flow.extended(std::move(order), std::move(results), rig.now(), rig.effects);
  EXPECT_TRUE(rig.effects.settler);
  ASSERT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.last[0].receipt.version, 2);
}

TEST(JobFlowLeases, ALossWhileItsSettlementWaitsIsCountedOnce) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.pass(15s);
  auto order = rig.flow.next_extension(rig.now(), rig.effects);
  rig.finish(0);
  EXPECT_EQ(rig.settle(), 0U);
  auto results = rig.extensions(order, SettleStatus::lost);
  rig.flow.extended(std::move(order), std::move(results), rig.now(), rig.effects);
  EXPECT_EQ(rig.settle(), 0U);
  EXPECT_EQ(rig.account().lost, 1U);
  EXPECT_EQ(rig.account().in_flight(), 0U);
  EXPECT_EQ(rig.flow.in_flight().size(), 0U);
}

TEST(JobFlowLeases, AMessageThatWaitsTooLongForAWorkerIsPutBack) {
  FlowRig rig(2);
  rig.poll(2);
  rig.start(0);
  rig.pass(15s);
  EXPECT_EQ(rig.extend(), 1U) << "only the one that runs";
  EXPECT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.last[0].action, CompletionAction::release);
  EXPECT_EQ(rig.start(1), nullptr);
  EXPECT_EQ(rig.account().released, 1U);
}

TEST(JobFlowLeases, AreExtendedWhileTheirSettlementKeepsFailing) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.finish(0);
  const SteadyTime start = rig.now();
  while (rig.now() < start + 60s) {
    rig.settle(SettleStatus::failed);
    rig.extend();
    rig.pass(1s);
  }
  EXPECT_EQ(rig.account().lost, 0U);
  rig.pass(5s);
  EXPECT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.account().done, 1U);
}

TEST(JobFlowLeases, ButNotForEverAndWhatIsFinishedIsWrittenAllTheSame) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.finish(0);
  const SteadyTime start = rig.now();
  SteadyTime extended = start;
  while (rig.now() < start + 1h) {
    rig.settle(SettleStatus::failed);
    if (rig.extend() > 0) {
      extended = rig.now();
    }
    rig.pass(1s);
  }
  EXPECT_LT(extended - start, kSettlePatience + 1s);
  rig.pass(5s);
  EXPECT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.account().done, 1U);
  EXPECT_EQ(rig.account().lost, 0U);
}

TEST(JobFlowLeases, AnUnknownSettlementIsRepeatedBeforeAnythingElseTouchesIt) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.finish(0);
  EXPECT_EQ(rig.settle(SettleStatus::failed, ErrorCode::unknown_outcome), 1U);
  rig.pass(15s);
  auto order = rig.flow.next_extension(rig.now(), rig.effects);
  EXPECT_TRUE(order.tasks.empty());
  EXPECT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.last[0].receipt.version, 1);
}

TEST(JobFlowLeases, ALostLeaseStopsItsHandlerAndItsOutcomeNoLongerCounts) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.pass(15s);
  EXPECT_EQ(rig.extend(SettleStatus::lost), 1U);
  EXPECT_TRUE(rig.batches[0].attempt().stop_requested());
  EXPECT_FALSE(rig.batches[0].attempt().extend(1s));
  rig.finish(0);
  EXPECT_EQ(rig.settle(), 0U);
  EXPECT_EQ(rig.account().lost, 1U);
  EXPECT_EQ(rig.account().done, 0U);
}

TEST(JobFlowLeases, AStoreThatAnswersTooLittleIsAFailure) {
  FlowRig rig(2);
  rig.poll(2);
  rig.start(0);
  rig.finish(0);
  rig.start(1);
  rig.pass(15s);
  auto extension = rig.flow.next_extension(rig.now(), rig.effects);
  ASSERT_EQ(extension.tasks.size(), 2U);
  rig.flow.extended(std::move(extension), {}, rig.now(), rig.effects);
  auto settlement = rig.flow.next_settlement(rig.now(), rig.clock.wall_now(), rig.effects);
  ASSERT_EQ(settlement.tasks.size(), 1U);
  rig.flow.settled(std::move(settlement), {}, rig.now(), rig.effects);
  EXPECT_EQ(rig.effects.counts.settle_failed, 1U);
  rig.pass(1s);
  EXPECT_EQ(rig.settle(), 1U);
}

TEST(JobFlowStuck, AnAttemptThatExtendsItselfIsNot) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  for (int i = 0; i < 100; ++i) {
    rig.batches[0].attempt().extend(60s);
    rig.extend();
    rig.pass(10s);
  }
  EXPECT_EQ(rig.stuck(), 0U);
  rig.finish(0);
  EXPECT_EQ(rig.settle(), 1U);
}

TEST(JobFlowQuiescence, NeedsAnEmptyAnswerAndEmptyHands) {
  FlowRig rig(1);
  EXPECT_FALSE(rig.activity().quiescent);
  rig.poll(0);
  EXPECT_TRUE(rig.activity().quiescent);
  rig.flow.wake(rig.effects);
  EXPECT_FALSE(rig.activity().quiescent);
  rig.poll(1);
  EXPECT_FALSE(rig.activity().quiescent);
  rig.start(0);
  rig.finish(0);
  rig.settle();
  EXPECT_FALSE(rig.activity().quiescent) << "it has not looked since";
  rig.poll(0);
  EXPECT_TRUE(rig.activity().quiescent);
}

TEST(JobFlowDrain, ReleasesWhatHasNotStartedAndStopsWhatHas) {
  FlowRig rig(2);
  rig.poll(2);
  rig.start(0);
  rig.flow.drain().begin(rig.now(), rig.now() + 10s, rig.effects);
  EXPECT_TRUE(rig.batches[0].attempt().stop_requested());
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 0U);
  EXPECT_EQ(rig.start(1), nullptr);
  EXPECT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.last[0].action, CompletionAction::release);
  EXPECT_EQ(rig.flow.drain().step(rig.now(), rig.effects), rig.now() + 8s);
  rig.effects = {};
  rig.finish(0);
  rig.settle();
  EXPECT_TRUE(rig.effects.drained);
  EXPECT_EQ(rig.flow.drain().step(rig.now(), rig.effects), std::nullopt);
  EXPECT_EQ(rig.account().done, 1U);
  EXPECT_EQ(rig.account().released, 1U);
}

TEST(JobFlowDrain, TriesOnceMoreBeforeItsEndWhatCouldNotBeWritten) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.finish(0);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(rig.settle(SettleStatus::failed), 1U);
    rig.pass(10s);
  }
  rig.flow.drain().begin(rig.now(), rig.now() + 2s, rig.effects);
  ASSERT_EQ(rig.settle(SettleStatus::failed), 1U);
  EXPECT_EQ(rig.settle(), 0U) << "its pauses have become long";
  rig.pass(1600ms);
  EXPECT_TRUE(rig.flow.drain().step(rig.now(), rig.effects));
  EXPECT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.flow.drain().step(rig.now(), rig.effects), std::nullopt);
  EXPECT_EQ(rig.account().done, 1U);
}

TEST(JobFlowDrain, WritesWhatThisHostHasFinishedBefore) {
  FlowRig rig(1);
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  queue::Claimed first = rig.messages(1);
  queue::Claimed again = first;
  again.deliveries[0].receipt.version = 5;
  again.deliveries[0].message.attempt = 2;
  rig.flow.claimed(std::move(first), rig.now(), rig.effects);
  rig.start(0);
  rig.finish(0);
  EXPECT_EQ(rig.settle(SettleStatus::lost), 1U);
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  rig.flow.drain().begin(rig.now(), rig.now() + 10s, rig.effects);
  rig.flow.claimed(std::move(again), rig.now(), rig.effects);
  ASSERT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.last[0].action, CompletionAction::remove) << "another host would run it again";
}

TEST(JobFlowDrain, WaitsForAHandlerWhoseMessageWasLost) {
  FlowRig rig(2);
  rig.poll(2);
  rig.start(0);
  rig.start(1);
  rig.pass(15s);
  EXPECT_EQ(rig.extend(SettleStatus::lost), 2U);
  rig.flow.drain().begin(rig.now(), rig.now() + 10s, rig.effects);
  EXPECT_EQ(rig.flow.drain().step(rig.now(), rig.effects), rig.now() + 8s);
  rig.finish(0);
  rig.effects = {};
  rig.pass(8s);
  EXPECT_EQ(rig.flow.drain().step(rig.now(), rig.effects), std::nullopt) << "and not longer than for any other";
  FlowRig quick(1);
  quick.poll(1);
  quick.start(0);
  quick.pass(15s);
  EXPECT_EQ(quick.extend(SettleStatus::lost), 1U);
  quick.flow.drain().begin(quick.now(), quick.now() + 10s, quick.effects);
  quick.effects = {};
  quick.finish(0);
  EXPECT_TRUE(quick.effects.drained);
  EXPECT_EQ(quick.flow.drain().step(quick.now(), quick.effects), std::nullopt);
}

TEST(JobFlowDrain, AClaimThatAnswersAfterTheEndIsStranded) {
  FlowRig rig(2);
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  rig.flow.drain().begin(rig.now(), rig.now() + 1s, rig.effects);
  rig.pass(1s);
  EXPECT_EQ(rig.flow.drain().step(rig.now(), rig.effects), std::nullopt);
  EXPECT_TRUE(rig.activity().claiming);
  rig.flow.claimed(rig.messages(2), rig.now(), rig.effects);
  const LedgerSnapshot ledger = rig.account();
  EXPECT_EQ(ledger.claimed, 2U);
  EXPECT_EQ(ledger.stranded, 2U);
  EXPECT_EQ(ledger.in_flight(), 0U);
}

TEST(JobFlowDrain, ASecondDrainOnlyBringsTheEndForward) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.flow.drain().begin(rig.now(), rig.now() + 10s, rig.effects);
  rig.flow.drain().begin(rig.now(), rig.now() + 20s, rig.effects);
  EXPECT_EQ(rig.flow.drain().step(rig.now(), rig.effects), rig.now() + 8s);
  rig.flow.drain().begin(rig.now(), rig.now() + 5s, rig.effects);
  EXPECT_EQ(rig.flow.drain().step(rig.now(), rig.effects), rig.now() + 4s);
}

TEST(JobFlowDrain, WhatRunsIsToldWhenTheEndIsBroughtForward) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.flow.drain().begin(rig.now(), rig.now() + 40s, rig.effects);
  EXPECT_EQ(rig.batches[0].attempt().time_left(), 38s);
  rig.flow.drain().begin(rig.now(), rig.now() + 10s, rig.effects);
  EXPECT_EQ(rig.batches[0].attempt().time_left(), 8s) << "its message is released then";
  rig.flow.drain().hard_stop(rig.now(), rig.effects);
  EXPECT_EQ(rig.batches[0].attempt().time_left(), 0s);
}

TEST(JobFlowDrain, AnAbandonedHandlerNeitherSettlesNorCountsTwice) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.flow.drain().begin(rig.now(), rig.now() + 10s, rig.effects);
  rig.pass(8s);
  EXPECT_TRUE(rig.flow.drain().step(rig.now(), rig.effects).has_value());
  EXPECT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.last[0].action, CompletionAction::release);
  EXPECT_EQ(rig.flow.drain().step(rig.now(), rig.effects), std::nullopt);
  EXPECT_EQ(rig.activity().running.size(), 1U);
  rig.finish(0);
  EXPECT_EQ(rig.settle(), 0U);
  EXPECT_EQ(rig.account().released, 1U);
  EXPECT_EQ(rig.account().claimed, 1U);
  EXPECT_EQ(rig.flow.in_flight().size(), 0U);
}

TEST(JobFlowDrain, AHardStopWaitsForTheReceiptThatACheckpointBrings) {
  FlowRig rig(1);
  rig.poll(1);
  Task* const task = rig.start(0);
  ASSERT_NE(task, nullptr);
  const auto loan = JobFlow::Checkpoints::lend(rig.flow, *task, rig.now());
  ASSERT_EQ(loan.state, LeaseKeeper::Loan::State::ours);
  rig.flow.drain().hard_stop(rig.now(), rig.effects);
  EXPECT_TRUE(rig.flow.drain().step(rig.now(), rig.effects));
  EXPECT_EQ(rig.settle(), 0U) << "the receipt that it has may be void";
  EXPECT_TRUE(rig.flow.drain().step(rig.now(), rig.effects)) << "what was lent comes back in a moment";
  queue::SettleResult stored;
  stored.version = loan.receipt.version + 1;
  rig.effects = {};
  JobFlow::Checkpoints::repaid(rig.flow, *task, stored, "half", rig.now(), rig.effects);
  EXPECT_TRUE(rig.effects.drained);
  EXPECT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.last[0].receipt.version, stored.version);
  EXPECT_FALSE(rig.flow.drain().step(rig.now(), rig.effects));
  EXPECT_EQ(rig.account().released, 1U);
}

TEST(Drain, ThatGivesAHandlerUpCallsItsWaitForACheckpoint) {
  FlowRig rig(1);
  rig.poll(1);
  ASSERT_NE(rig.start(0), nullptr);
  rig.flow.drain().begin(rig.now(), rig.now() + 10s, rig.effects);
  EXPECT_FALSE(rig.effects.checkpoints);
  rig.pass(9s);
  EXPECT_TRUE(rig.flow.drain().step(rig.now(), rig.effects));
  EXPECT_TRUE(rig.effects.checkpoints);
}

}  // namespace
}  // namespace sluice::work
