// What becomes of messages whose effects the store refuses, and of effects that could not be written yet.

#include <gtest/gtest.h>

#include "host/queue/effects.hpp"
#include "host/work/job_flow.hpp"
#include "tests/work/flow_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""s;
using plugin::OutcomeStatus;
using queue::CompletionAction;
using queue::SettleStatus;

std::shared_ptr<queue::Effects> effects() {
  auto made = std::make_shared<queue::Effects>();
  made->writes.push_back({queue::SqlWrite{"UPDATE accounts SET balance = 0"}, "debit"});
  return made;
}

/// Runs a message to its end with effects; what the source is asked to settle.
void run_to_its_end(FlowRig& rig, std::uint32_t attempt = 1) {
  rig.poll(1, attempt);
  ASSERT_NE(rig.start(0), nullptr);
  plugin::Outcome outcome{OutcomeStatus::done, {}, {}};
  outcome.effects = effects();
  rig.batches[0].finish(std::move(outcome), rig.now());
  rig.flow.collect(0, rig.now(), rig.effects);
}

/// One settle call, whose only completion is answered like this.
queue::Completion settle(FlowRig& rig, queue::SettleResult result) {
  auto order = rig.flow.next_settlement(rig.now(), rig.clock.wall_now(), rig.effects);
  EXPECT_EQ(order.completions.size(), 1U);
  queue::Completion asked = order.completions.empty() ? queue::Completion() : order.completions.front();
  rig.flow.settled(std::move(order), {std::move(result)}, rig.now(), rig.effects);
  return asked;
}

queue::SettleResult refusal(bool reject = false) {
  return {SettleStatus::refused, Error(ErrorCode::conflict, "write \"debit\" was refused: it changed 0 rows"), reject};
}

TEST(RefusedEffects, AnEndWithoutAnyThatIsRefusedIsTriedAgainAfterAPause) {
  FlowRig rig(1);
  rig.poll(1, 1);
  ASSERT_NE(rig.start(0), nullptr);
  rig.batches[0].finish(plugin::Outcome{OutcomeStatus::done, {}, {}}, rig.now());
  rig.flow.collect(0, rig.now(), rig.effects);
  settle(rig, {SettleStatus::refused, Error(ErrorCode::invalid, "its messages were refused: too large")});
  EXPECT_EQ(rig.effects.counts.settle_failed, 1U);
  const auto order = rig.flow.next_settlement(rig.now(), rig.clock.wall_now(), rig.effects);
  EXPECT_TRUE(order.completions.empty());
  EXPECT_GT(order.wake, rig.now());
}

TEST(RefusedEffects, AreDroppedAndTheMessageIsRetriedWithTheReason) {
  FlowRig rig(1);
  run_to_its_end(rig);
  const auto asked = settle(rig, refusal());
  EXPECT_EQ(asked.action, CompletionAction::remove);
  ASSERT_NE(asked.effects, nullptr);
  EXPECT_EQ(rig.account().done, 0U);
  const auto then = settle(rig, {});
  EXPECT_EQ(then.action, CompletionAction::retry);
  EXPECT_EQ(then.effects, nullptr);
  EXPECT_EQ(then.receipt, asked.receipt);
  EXPECT_GT(then.delay, Duration::zero()) << "as its policy says";
  EXPECT_EQ(then.failure.error, "write \"debit\" was refused: it changed 0 rows");
  EXPECT_EQ(then.failure.attempts, 1U);
  EXPECT_EQ(rig.account().retried, 1U);
  EXPECT_EQ(rig.account().ended(), rig.account().claimed);
  EXPECT_EQ(rig.effects.counts.effects_refused, 1U);
  EXPECT_EQ(rig.effects.counts.settle_failed, 0U);
  EXPECT_FALSE(rig.activity().denial);
  ASSERT_FALSE(rig.effects.lines.empty());
  EXPECT_EQ(rig.effects.lines.front().text, "its effects were refused, to be retried");
  EXPECT_EQ(rig.effects.lines.front().message_id, "m-0");
  EXPECT_EQ(rig.effects.lines.front().detail, "write \"debit\" was refused: it changed 0 rows");
}

/// Loses what was finished, with its effects, and claims it once more as each of these attempts; it is not run again.
void come_back(FlowRig& rig, std::initializer_list<std::uint32_t> attempts) {
  run_to_its_end(rig);
  for (const std::uint32_t attempt : attempts) {
    settle(rig, {SettleStatus::lost});
    ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
    queue::Claimed again = rig.messages(1, attempt);
    again.deliveries[0].message.id = "m-0";
    again.deliveries[0].receipt = {"m-0", 5, 0};
    rig.flow.claimed(std::move(again), rig.now(), rig.effects);
    ASSERT_EQ(rig.start(0), nullptr);
  }
}

TEST(RefusedEffects, OfAnAttemptBeforeCostNoOtherOne) {
  FlowRig rig(1);
  come_back(rig, {2});
  EXPECT_NE(settle(rig, refusal()).effects, nullptr);
  const auto then = settle(rig, {});
  EXPECT_EQ(then.action, CompletionAction::release) << "the second attempt has not been made";
  EXPECT_GT(then.delay, Duration::zero());
  EXPECT_EQ(then.marks, queue::Marks{0}) << "its handler has returned";
  EXPECT_EQ(rig.account().snoozed, 1U);
  EXPECT_EQ(rig.account().ended(), rig.account().claimed);
}

TEST(RefusedEffects, OfAnAttemptBeforeCostNoOtherOneHoweverOftenItIsLost) {
  FlowRig rig(1);
  come_back(rig, {2, 2});
  settle(rig, refusal());
  EXPECT_EQ(settle(rig, {}).action, CompletionAction::release);
}

TEST(RefusedEffects, OfAMessageThatIsKeptAreItsFailureWhenNoAttemptIsLeft) {
  config::JobConfig job = FlowRig::job();
  job.dead_letter = config::DeadLetterPolicy::keep;
  FlowRig rig(1, FlowRig::settings(), job);
  come_back(rig, {job.retry.max_attempts + 1});
  settle(rig, refusal());
  const auto then = settle(rig, {});
  EXPECT_EQ(then.action, CompletionAction::retry);
  EXPECT_EQ(then.failure.error, "write \"debit\" was refused: it changed 0 rows");
}

TEST(RefusedEffects, OfAnAttemptThatWasGivenBackCostThatOne) {
  FlowRig rig(1);
  come_back(rig, {1});
  settle(rig, refusal());
  EXPECT_EQ(settle(rig, {}).action, CompletionAction::retry);
}

TEST(RefusedEffects, OfTheLastAttemptThatWasMadeGoToTheDlq) {
  FlowRig rig(1);
  come_back(rig, {FlowRig::job().retry.max_attempts + 1});
  settle(rig, refusal());
  const auto then = settle(rig, {});
  EXPECT_EQ(then.action, CompletionAction::dead_letter);
  EXPECT_EQ(then.failure.attempts, FlowRig::job().retry.max_attempts);
}

TEST(RefusedEffects, WaitWithoutAnAttemptWhereTheStoreSaysSo) {
  FlowRig rig(1);
  run_to_its_end(rig);
  settle(rig, {.status = SettleStatus::refused, .error = Error(ErrorCode::not_found, "no such queue"), .wait = 5s});
  const auto then = settle(rig, {});
  EXPECT_EQ(then.action, CompletionAction::release);
  EXPECT_EQ(then.delay, 5s);
  EXPECT_EQ(then.effects, nullptr);
  EXPECT_EQ(rig.account().snoozed, 1U);
  EXPECT_EQ(rig.account().ended(), rig.account().claimed);
}

TEST(WatchedEnds, AreToldOnceTheyAreWritten) {
  FlowRig rig(1);
  rig.effects.watched = true;
  run_to_its_end(rig, 2);
  EXPECT_TRUE(rig.effects.ended.empty());
  settle(rig, {});
  ASSERT_EQ(rig.effects.ended.size(), 1U);
  const AttemptEnd& end = rig.effects.ended.front();
  EXPECT_EQ(end.id, "m-0");
  EXPECT_EQ(end.attempt, 2U);
  EXPECT_EQ(end.ending, Ending::done);
  ASSERT_TRUE(end.outcome);
  EXPECT_NE(end.outcome->effects, nullptr) << "they are committed with it";
}

TEST(WatchedEnds, SayWhatRefusedEffectsHaveComeTo) {
  FlowRig rig(1);
  rig.effects.watched = true;
  run_to_its_end(rig);
  settle(rig, refusal());
  EXPECT_TRUE(rig.effects.ended.empty());
  settle(rig, {});
  ASSERT_EQ(rig.effects.ended.size(), 1U);
  const AttemptEnd& end = rig.effects.ended.front();
  EXPECT_EQ(end.ending, Ending::retried);
  EXPECT_GT(end.delay, Duration::zero());
  ASSERT_TRUE(end.outcome);
  EXPECT_EQ(end.outcome->status, OutcomeStatus::retry);
  EXPECT_EQ(end.outcome->effects, nullptr);
  EXPECT_EQ(end.reason, "write \"debit\" was refused: it changed 0 rows");
}

TEST(WatchedEnds, SayWhyOneHasEndedWithoutAnOutcome) {
  FlowRig rig(1);
  rig.effects.watched = true;
  rig.poll(1);
  ASSERT_NE(rig.start(0), nullptr);
  rig.pass(std::chrono::seconds(66));
  rig.extend();
  settle(rig, {});
  ASSERT_EQ(rig.effects.ended.size(), 1U);
  EXPECT_FALSE(rig.effects.ended.front().outcome);
  EXPECT_EQ(rig.effects.ended.front().reason,
            "timed out: the handler did not return within 66s, it is stuck and its worker is lost");
}

TEST(WatchedEnds, SayWhatOneHadComeToThatIsNotRunAgainAndNeverWritten) {
  FlowRig rig(1);
  rig.effects.watched = true;
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  queue::Claimed first = rig.messages(1);
  queue::Claimed again = first;
  again.deliveries[0].receipt.version = 5;
  again.deliveries[0].message.attempt = 2;
  rig.flow.claimed(std::move(first), rig.now(), rig.effects);
  ASSERT_NE(rig.start(0), nullptr);
  rig.batches[0].finish({OutcomeStatus::reject, {}, "no such account"}, rig.now());
  rig.flow.collect(0, rig.now(), rig.effects);
  settle(rig, {SettleStatus::lost, {}});
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  rig.flow.claimed(std::move(again), rig.now(), rig.effects);
  rig.effects.ended.clear();
  for (int tries = 0; tries < 10; ++tries) {
    rig.pass(10s);
    ASSERT_EQ(rig.settle(SettleStatus::failed, ErrorCode::invalid), 1U);
  }
  ASSERT_EQ(rig.effects.ended.size(), 1U);
  EXPECT_EQ(rig.effects.ended.front().ending, Ending::lost);
  EXPECT_EQ(rig.effects.ended.front().reason, "no such account");
}

TEST(WatchedEnds, AreNotGatheredWhereNobodyWatches) {
  FlowRig rig(1);
  run_to_its_end(rig);
  settle(rig, {});
  EXPECT_TRUE(rig.effects.ended.empty());
}

TEST(RefusedEffects, RejectTheMessageWhereItsAuthorSaysSo) {
  FlowRig rig(1);
  run_to_its_end(rig);
  settle(rig, refusal(true));
  EXPECT_EQ(settle(rig, {}).action, CompletionAction::dead_letter);
  EXPECT_EQ(rig.account().rejected, 1U);
  EXPECT_EQ(rig.effects.lines.front().text, "its effects were refused, the message goes to the DLQ");
}

TEST(RefusedEffects, OfTheLastAttemptFollowTheDeadLetterPolicy) {
  FlowRig rig(1);
  run_to_its_end(rig, 3);
  settle(rig, refusal());
  const auto then = settle(rig, {});
  EXPECT_EQ(then.action, CompletionAction::dead_letter);
  EXPECT_EQ(then.failure.error, "write \"debit\" was refused: it changed 0 rows");
  config::JobConfig config = FlowRig::job();
  config.dead_letter = config::DeadLetterPolicy::discard;
  FlowRig discarding(1, FlowRig::settings(), config);
  run_to_its_end(discarding, 3);
  settle(discarding, refusal());
  EXPECT_EQ(settle(discarding, {}).action, CompletionAction::remove);
  EXPECT_EQ(discarding.account().discarded, 1U);
}

TEST(RefusedEffects, HoldUpNoDrain) {
  FlowRig rig(1);
  run_to_its_end(rig);
  auto order = rig.flow.next_settlement(rig.now(), rig.clock.wall_now(), rig.effects);
  ASSERT_EQ(order.tasks.size(), 1U);
  rig.flow.drain().begin(rig.now(), rig.now() + 10s, rig.effects);
  rig.flow.settled(std::move(order), {refusal()}, rig.now(), rig.effects);
  EXPECT_EQ(settle(rig, {}).action, CompletionAction::retry);
  EXPECT_TRUE(rig.flow.in_flight().tasks().empty());
  EXPECT_EQ(rig.account().retried, 1U);
}

TEST(RefusedEffects, TheirLeaseIsLookedAtAgainAfterTheCall) {
  FlowRig rig(1);
  run_to_its_end(rig);
  auto order = rig.flow.next_settlement(rig.now(), rig.clock.wall_now(), rig.effects);
  EXPECT_EQ(rig.flow.next_extension(rig.now(), rig.effects).wake, SteadyTime::max()) << "nothing else is held";
  rig.effects = {};
  rig.flow.settled(std::move(order), {refusal()}, rig.now(), rig.effects);
  EXPECT_TRUE(rig.effects.keeper) << "what they came to may wait to be written";
}

TEST(RefusedEffects, ARetryOfThemIsNotTakenForFinishedWork) {
  FlowRig rig(1);
  run_to_its_end(rig);
  settle(rig, refusal());
  settle(rig, {SettleStatus::lost, {}});
  EXPECT_EQ(rig.account().lost, 1U);
  // It comes back, and is run again.
  rig.next_id = 0;
  rig.poll(1, 2);
  EXPECT_NE(rig.start(0), nullptr);
}

TEST(Effects, ThatACallHadNoTimeForAreAskedForAgainAtOnce) {
  FlowRig rig(1);
  run_to_its_end(rig);
  const auto asked =
      settle(rig, {.status = SettleStatus::failed, .error = Error(ErrorCode::unavailable, "no time"), .left = true});
  EXPECT_FALSE(rig.activity().denial);
  EXPECT_TRUE(rig.effects.lines.empty()) << "no failure of the store";
  EXPECT_EQ(rig.effects.counts.settle_failed, 0U);
  EXPECT_TRUE(rig.flow.next_claim(rig.now()).count > 0) << "it is not blocked";
  const auto then = settle(rig, {});
  EXPECT_EQ(then.receipt, asked.receipt);
  EXPECT_EQ(then.effects, asked.effects);
  EXPECT_EQ(rig.account().done, 1U);
}

TEST(Effects, AreWrittenAgainAsTheyWereWhenTheStoreFailed) {
  FlowRig rig(1);
  run_to_its_end(rig);
  const auto first = settle(rig, {SettleStatus::failed, Error(ErrorCode::unknown_outcome, "no answer")});
  rig.pass(10s);
  const auto second = settle(rig, {});
  EXPECT_EQ(second.action, CompletionAction::remove);
  EXPECT_EQ(second.effects, first.effects);
  EXPECT_EQ(rig.account().done, 1U);
}

TEST(Effects, OfALostReceiptAreKeptForWhenTheMessageComesBack) {
  FlowRig rig(1);
  run_to_its_end(rig);
  const auto first = settle(rig, {SettleStatus::lost, {}});
  rig.next_id = 0;
  rig.poll(1, 2);
  rig.pass(1s);
  const auto second = settle(rig, {});
  EXPECT_EQ(second.action, CompletionAction::remove);
  EXPECT_EQ(second.effects, first.effects);
}

}  // namespace
}  // namespace sluice::work
