// What is said and kept of attempts that fail.
#include <gtest/gtest.h>

#include "host/work/job_flow.hpp"
#include "tests/work/flow_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using plugin::OutcomeStatus;
using queue::CompletionAction;

/// Runs one message for that long; what is asked of the source about it.
queue::Completion fail(FlowRig& rig, Duration took, plugin::Outcome outcome) {
  rig.poll(1);
  EXPECT_NE(rig.start(0), nullptr);
  rig.pass(took);
  rig.batches[0].finish(std::move(outcome), rig.now());
  rig.flow.collect(0, rig.now(), rig.effects);
  rig.pass(1s);
  EXPECT_EQ(rig.settle(), 1U);
  return rig.last.front();
}

TEST(Failures, ATimeOutIsCalledATimeOut) {
  FlowRig silent(1);
  EXPECT_EQ(fail(silent, 61s, {OutcomeStatus::retry, {}, {}}).failure.error, "timed out after 61s");
  EXPECT_EQ(silent.effects.counts.timed_out, 1U);
  FlowRig talking(1);
  EXPECT_EQ(fail(talking, 61s, {OutcomeStatus::fault, {}, "connection refused"}).failure.error,
            "timed out after 61s: connection refused");
  FlowRig knowing(1);
  EXPECT_EQ(fail(knowing, 61s, {OutcomeStatus::retry, {}, "the command timed out"}).failure.error,
            "the command timed out")
      << "it says so itself";
  FlowRig done(1);
  EXPECT_EQ(fail(done, 61s, {OutcomeStatus::done, {}, {}}).action, CompletionAction::remove) << "done is done";
  EXPECT_EQ(done.effects.counts.timed_out, 1U);
  EXPECT_EQ(done.activity().times.time_outs(), 1U);
  FlowRig quick(1);
  EXPECT_EQ(fail(quick, 59s, {OutcomeStatus::retry, {}, "refused"}).failure.error, "refused");
  EXPECT_EQ(quick.effects.counts.timed_out, 0U);
}

TEST(Failures, KeepTheSpansOfTheirAttempt) {
  FlowRig rig(1);
  const queue::Completion completion = fail(rig, 2s, {OutcomeStatus::retry, 7s, "refused"});
  EXPECT_EQ(completion.failure.took, 2s);
  EXPECT_EQ(completion.failure.wait, 7s);
  EXPECT_EQ(completion.delay, 7s);
}

TEST(Failures, AreLoggedWithAttemptWaitAndTime) {
  FlowRig rig(1);
  fail(rig, 2s, {OutcomeStatus::retry, 7s, "refused"});
  ASSERT_FALSE(rig.effects.lines.empty());
  const StepEffects::Line& line = rig.effects.lines.front();
  EXPECT_EQ(line.text, "to be retried");
  EXPECT_EQ(line.attempt, 1U);
  EXPECT_EQ(line.took, 2s);
  ASSERT_TRUE(line.wait);
  EXPECT_EQ(*line.wait, 7s);
}

TEST(Failures, OfAStuckHandlerSaySo) {
  FlowRig rig(1);
  rig.poll(1);
  ASSERT_NE(rig.start(0), nullptr);
  for (const Duration span : {Duration(20s), Duration(20s), Duration(20s), Duration(6s)}) {
    rig.pass(span);
    rig.extend();  // the lease keeper looks after the workers too
  }
  rig.pass(1s);
  ASSERT_EQ(rig.settle(), 1U);
  const queue::Failure& why = rig.last.front().failure;
  EXPECT_EQ(why.error, "timed out: the handler did not return within 66s, it is stuck and its worker is lost");
  EXPECT_EQ(why.took, 66s);
  rig.finish(0);
  EXPECT_EQ(rig.effects.counts.timed_out, 1U) << "and not once more when it returns";
  EXPECT_EQ(rig.activity().times.time_outs(), 1U);
}

}  // namespace
}  // namespace sluice::work
