#include "host/runtime/isolation_ward.hpp"
#include "host/stores/core/outcomes.hpp"
#include "tests/runtime/recovery_rig.hpp"

namespace sluice::runtime {
namespace {

using isolation::Committing;
using isolation::LedgerSettlement;
using queue::CompletionAction;
using testing::HasSubstr;
using testing::SizeIs;

class RecoveryPlanTest : public testing::Test {
 protected:
  std::vector<RecoveryStep> plan(const std::vector<config::JobConfig>& jobs = {job_config()}) {
    return plan_recovery(ledger_, jobs, random_, WallTime(Duration(77)));
  }
  const queue::Completion& of(const std::string& id, const std::vector<RecoveryStep>& plan) {
    for (const RecoveryStep& step : plan) {
      for (const queue::Completion& completion : step.completions) {
        if (completion.receipt.id == id) {
          return completion;
        }
      }
    }
    ADD_FAILURE() << id;
    return plan.front().completions.front();
  }

  SeededRandom random_{1};
  LedgerContents ledger_{.host = "dead"};
};

TEST_F(RecoveryPlanTest, OnlyTheBlamedMessageCounts) {
  ledger_.crash = crash_of("bomb");
  ledger_.held = {held("bomb", true, true), held("neighbour", true), held("waiting", false)};
  const auto steps = plan();
  ASSERT_THAT(steps, SizeIs(1));
  EXPECT_THAT(steps[0].counts, testing::ElementsAre(&LedgerSettlement::counted, &LedgerSettlement::released,
                                                    &LedgerSettlement::released));
  const queue::Completion& bomb = of("bomb", steps);
  EXPECT_EQ(bomb.action, CompletionAction::retry);
  EXPECT_EQ(bomb.marks, queue::core::kSuspect);
  EXPECT_THAT(bomb.failure.error, testing::AllOf(HasSubstr("SIGSEGV"), HasSubstr("bomb.so"), HasSubstr("explode()")));
  EXPECT_EQ(bomb.failure.handler, "bomb");
  EXPECT_EQ(bomb.failure.host, "dead");
  EXPECT_EQ(bomb.failure.attempts, 1U);
  EXPECT_EQ(bomb.failure.failed_at, WallTime(Duration(77)));
  for (const char* innocent : {"neighbour", "waiting"}) {
    EXPECT_EQ(of(innocent, steps).action, CompletionAction::release) << innocent;
    EXPECT_EQ(of(innocent, steps).marks, std::nullopt) << innocent;
  }
}

TEST_F(RecoveryPlanTest, ABlamedMessageWhoseAttemptsAreUsedUpFollowsThePolicy) {
  ledger_.crash = crash_of("bomb");
  ledger_.held = {held("bomb", true, true)};
  ledger_.held[0].attempt = 5;
  config::JobConfig job = job_config();
  EXPECT_EQ(of("bomb", plan({job})).action, CompletionAction::dead_letter);
  job.dead_letter = config::DeadLetterPolicy::discard;
  EXPECT_EQ(of("bomb", plan({job})).action, CompletionAction::remove);
}

TEST_F(RecoveryPlanTest, ADeadLetterOfACrashHoldsItsGroupWhereTheJobSaysSo) {
  ledger_.crash = crash_of("bomb");
  ledger_.held = {held("bomb", true, true)};
  ledger_.held[0].attempt = 5;
  config::JobConfig job = job_config();
  EXPECT_FALSE(of("bomb", plan({job})).hold_group);
  job.order = config::Order::group;
  job.on_dead_letter = config::OnDeadLetter::hold;
  EXPECT_EQ(of("bomb", plan({job})).action, CompletionAction::dead_letter);
  EXPECT_TRUE(of("bomb", plan({job})).hold_group);
}

TEST_F(RecoveryPlanTest, WithoutACrashRecordWhatRanIsSuspectAndNothingCounts) {
  ledger_.held = {held("ran", true), held("waiting", false)};
  const auto steps = plan();
  EXPECT_EQ(of("ran", steps).action, CompletionAction::release);
  EXPECT_EQ(of("ran", steps).marks, queue::core::kSuspect);
  EXPECT_EQ(of("waiting", steps).action, CompletionAction::release);
  EXPECT_EQ(of("waiting", steps).marks, std::nullopt);
}

TEST_F(RecoveryPlanTest, AHostThatEndedItselfDiedOfNobody) {
  ledger_.unclean_end = {{}, "a handler had not returned"};
  ledger_.held = {held("ran", true), held("alone", false), held("waiting", false)};
  ledger_.held[1].committing = Committing::alone;
  const auto steps = plan();
  EXPECT_THAT(steps[0].counts, testing::ElementsAre(&LedgerSettlement::released, &LedgerSettlement::released,
                                                    &LedgerSettlement::released));
  EXPECT_EQ(of("ran", steps).marks, std::nullopt);
  EXPECT_EQ(ledger_.cause(), "drained, but not clean: a handler had not returned");
}

TEST_F(RecoveryPlanTest, ACrashThatBlamesNobodyLeavesSuspectsToo) {
  ledger_.crash = crash_of("");
  ledger_.crash->blamed = false;
  ledger_.held = {held("ran", true)};
  EXPECT_EQ(of("ran", plan()).marks, queue::core::kSuspect);
}

TEST_F(RecoveryPlanTest, WhatItsHandlerHadFinishedIsRemovedWhoeverIsBlamed) {
  for (const bool blamed : {false, true}) {
    ledger_.crash = blamed ? std::optional(crash_of("bomb")) : std::nullopt;
    ledger_.held = {held("bomb", true, blamed), held("finished", false)};
    ledger_.held[1].finished = true;
    const auto steps = plan();
    EXPECT_EQ(of("finished", steps).action, CompletionAction::remove);
    EXPECT_EQ(steps[0].counts[1], &LedgerSettlement::finished);
  }
}

TEST_F(RecoveryPlanTest, WhatHadNotBegunStaysAsItIs) {
  ledger_.held = {held("waiting", false)};
  const auto steps = plan();
  EXPECT_EQ(of("waiting", steps).marks, std::nullopt) << "a suspect stays one";
  EXPECT_EQ(steps[0].counts[0], &LedgerSettlement::released);
}

TEST_F(RecoveryPlanTest, WhatWasBeingCommittedIsSuspectAndCountsWhereItWasAlone) {
  ledger_.held = {held("together", false), held("alone", false), held("ran", true), held("waiting", false)};
  ledger_.held[0].committing = Committing::together;
  ledger_.held[1].committing = Committing::alone;
  const auto steps = plan();
  EXPECT_THAT(steps[0].counts, testing::ElementsAre(&LedgerSettlement::suspects, &LedgerSettlement::counted,
                                                    &LedgerSettlement::suspects, &LedgerSettlement::released));
  EXPECT_EQ(of("together", steps).action, CompletionAction::release);
  EXPECT_EQ(of("together", steps).marks, queue::core::kSuspect);
  EXPECT_EQ(of("alone", steps).action, CompletionAction::retry);
  EXPECT_EQ(of("alone", steps).marks, queue::core::kSuspect);
  EXPECT_EQ(of("alone", steps).failure.error,
            "its host ended while it committed the statements of this message, and of no other: nothing says why: "
            "killed, out of memory, or power lost");
  ledger_.held[1].attempt = 5;
  EXPECT_EQ(of("alone", plan()).action, CompletionAction::dead_letter);
}

TEST_F(RecoveryPlanTest, SoItIsAfterACrashThatBlamesNobody) {
  ledger_.crash = crash_of("");
  ledger_.crash->blamed = false;
  ledger_.held = {held("alone", false)};
  ledger_.held[0].committing = Committing::alone;
  EXPECT_THAT(of("alone", plan()).failure.error, HasSubstr("and of no other: SIGSEGV"));
}

TEST_F(RecoveryPlanTest, WhoeverIsBlamedClearsWhatWasBeingCommitted) {
  ledger_.crash = crash_of("bomb");
  ledger_.held = {held("bomb", true, true), held("alone", false), held("together", false)};
  ledger_.held[1].committing = Committing::alone;
  ledger_.held[2].committing = Committing::together;
  EXPECT_THAT(plan()[0].counts, testing::ElementsAre(&LedgerSettlement::counted, &LedgerSettlement::released,
                                                     &LedgerSettlement::released));
}

TEST_F(RecoveryPlanTest, AJobThatIsGoneDisposesOfNothing) {
  ledger_.crash = crash_of("bomb");
  ledger_.held = {held("bomb", true, true)};
  ledger_.held[0].attempt = 900;
  EXPECT_EQ(of("bomb", plan({})).action, CompletionAction::retry);
}

TEST_F(RecoveryPlanTest, EverySourceHasAStepOfItsOwn) {
  ledger_.held = {held("a", false), held("b", false)};
  ledger_.held[1].address.half = queue::Half::dlq;
  EXPECT_THAT(plan(), SizeIs(2));
}

}  // namespace
}  // namespace sluice::runtime
