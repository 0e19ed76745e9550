#include <gtest/gtest.h>

#include "host/work/in_flight_table.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""s;
using plugin::Outcome;
using plugin::OutcomeStatus;
using queue::CompletionAction;

config::JobConfig job(config::DeadLetterPolicy policy, config::Source source = config::Source::standard) {
  config::JobConfig config;
  config.name = "orders";
  config.handler = "greeter";
  config.source = source;
  config.dead_letter = policy;
  config.retry = {.max_attempts = 3,
                  .backoff = config::Backoff::constant,
                  .base = 2s,
                  .max = 10min,
                  .jitter = config::Jitter::none};
  return config;
}

FailurePolicy policy(config::DeadLetterPolicy dead_letter = config::DeadLetterPolicy::move) {
  return {job(dead_letter), "worker-a"};
}

Disposition decide(const Outcome& outcome, std::uint32_t attempt = 1, const FailurePolicy& rules = policy()) {
  SeededRandom random(1);
  return dispose(outcome, attempt, rules, random);
}

TEST(Disposition, DoneAndDiscardRemove) {
  const auto done = decide({OutcomeStatus::done, {}, {}});
  EXPECT_EQ(done.action, CompletionAction::remove);
  EXPECT_EQ(done.ending, Ending::done);
  const auto discarded = decide({OutcomeStatus::discard, {}, "not wanted"});
  EXPECT_EQ(discarded.action, CompletionAction::remove);
  EXPECT_EQ(discarded.ending, Ending::discarded);
}

TEST(Disposition, RetryFollowsTheHandlerThenThePolicy) {
  const auto named = decide({OutcomeStatus::retry, 7s, "busy"});
  EXPECT_EQ(named.action, CompletionAction::retry);
  EXPECT_EQ(named.delay, 7s);
  EXPECT_EQ(named.ending, Ending::retried);
  EXPECT_EQ(named.failure->error, "busy");
  EXPECT_EQ(named.failure->handler, "greeter");
  EXPECT_EQ(named.failure->host, "worker-a");
  EXPECT_EQ(named.failure->attempts, 1U);
  EXPECT_EQ(decide({OutcomeStatus::retry, {}, "busy"}).delay, 2s);
  EXPECT_EQ(decide({OutcomeStatus::retry, 0s, "now"}).delay, 0s);
}

TEST(Disposition, AFaultIsARetryByPolicyAndAlwaysHasAReason) {
  const auto fault = decide({OutcomeStatus::fault, 99h, {}});
  EXPECT_EQ(fault.action, CompletionAction::retry);
  EXPECT_EQ(fault.delay, 2s);
  EXPECT_FALSE(fault.failure->error.empty());
}

TEST(Disposition, UsedUpAttemptsFollowTheDeadLetterPolicy) {
  for (const auto status : {OutcomeStatus::retry, OutcomeStatus::fault}) {
    const Outcome failed{status, 1s, "broken"};
    const auto moved = decide(failed, 3);
    EXPECT_EQ(moved.action, CompletionAction::dead_letter);
    EXPECT_EQ(moved.ending, Ending::rejected);
    EXPECT_EQ(moved.failure->error, "broken");
    EXPECT_EQ(moved.failure->attempts, 3U);
    const auto discarded = decide(failed, 3, policy(config::DeadLetterPolicy::discard));
    EXPECT_EQ(discarded.action, CompletionAction::remove);
    EXPECT_EQ(discarded.ending, Ending::discarded);
    const auto kept = decide(failed, 3, policy(config::DeadLetterPolicy::keep));
    EXPECT_EQ(kept.action, CompletionAction::retry);
    EXPECT_EQ(kept.delay, 10min);
    EXPECT_EQ(kept.ending, Ending::retried);
  }
}

TEST(Disposition, RejectDoesNotWaitForAttemptsToBeUsedUp) {
  EXPECT_EQ(decide({OutcomeStatus::reject, {}, "bad"}, 1).action, CompletionAction::dead_letter);
  EXPECT_EQ(decide({OutcomeStatus::reject, {}, "bad"}, 1, policy(config::DeadLetterPolicy::discard)).ending,
            Ending::discarded);
  EXPECT_EQ(decide({OutcomeStatus::reject, {}, "bad"}, 1, policy(config::DeadLetterPolicy::keep)).delay, 10min);
}

TEST(Disposition, SnoozeAndReleaseGiveTheAttemptBackEvenOnTheLast) {
  const auto snoozed = decide({OutcomeStatus::snooze, 5s, {}}, 3);
  EXPECT_EQ(snoozed.action, CompletionAction::release);
  EXPECT_EQ(snoozed.delay, 5s);
  EXPECT_EQ(snoozed.ending, Ending::snoozed);
  const auto released = decide({OutcomeStatus::release, 5s, {}}, 3);
  EXPECT_EQ(released.action, CompletionAction::release);
  EXPECT_EQ(released.delay, 0s);
  EXPECT_EQ(released.ending, Ending::released);
}

TEST(Disposition, DelaysOfAHandlerStayWithinBounds) {
  EXPECT_EQ(decide({OutcomeStatus::snooze, Duration::max(), {}}).delay, kMaxDelay);
  EXPECT_EQ(decide({OutcomeStatus::retry, Duration::max(), {}}).delay, kMaxDelay);
  EXPECT_EQ(decide({OutcomeStatus::snooze, -5s, {}}).delay, 0s);
  EXPECT_EQ(decide({OutcomeStatus::snooze, {}, {}}).delay, 0s);
}

TEST(Disposition, ExhaustedFollowsThePolicyAndSaysWhy) {
  const auto moved = dispose_exhausted(4, policy());
  EXPECT_EQ(moved.action, CompletionAction::dead_letter);
  EXPECT_EQ(moved.ending, Ending::rejected);
  EXPECT_NE(moved.failure->error.find("3 attempts"), std::string::npos) << moved.failure->error;
  EXPECT_EQ(moved.failure->attempts, 3U);
  EXPECT_EQ(dispose_exhausted(4, policy(config::DeadLetterPolicy::discard)).action, CompletionAction::dead_letter)
      << "no handler of ours has seen it fail";
  const auto kept = dispose_exhausted(4, policy(config::DeadLetterPolicy::keep));
  EXPECT_EQ(kept.action, CompletionAction::retry);
  EXPECT_EQ(kept.delay, 10min);
  EXPECT_TRUE(kept.failure == nullptr) << "the reason of its last attempt must stay";
  EXPECT_EQ(kept.marks, std::nullopt) << "no handler has come to an end";
}

TEST(Disposition, WhatNoHandlerHasSeenKeepsItsAttemptAndIsNeverDiscarded) {
  const auto moved = dispose_unseen("it has no key", 1, policy());
  EXPECT_EQ(moved.action, CompletionAction::dead_letter);
  EXPECT_EQ(moved.failure->error, "it has no key");
  EXPECT_EQ(moved.failure->attempts, 0U);
  EXPECT_EQ(dispose_unseen("x", 1, policy(config::DeadLetterPolicy::discard)).action, CompletionAction::dead_letter);
  const auto kept = dispose_unseen("x", 2, policy(config::DeadLetterPolicy::keep));
  EXPECT_EQ(kept.action, CompletionAction::release);
  EXPECT_EQ(kept.delay, 10min);
  EXPECT_EQ(kept.marks, std::nullopt) << "nobody has shown that a suspect is harmless";
}

TEST(Disposition, InTheDeadLetterQueueMoveMeansKeep) {
  const FailurePolicy rules(job(config::DeadLetterPolicy::move, config::Source::dlq), "worker-a");
  EXPECT_EQ(dispose_exhausted(4, rules).action, CompletionAction::retry);
  EXPECT_EQ(decide({OutcomeStatus::reject, {}, "bad"}, 1, rules).action, CompletionAction::retry);
  const FailurePolicy discards(job(config::DeadLetterPolicy::discard, config::Source::dlq), "worker-a");
  EXPECT_EQ(dispose_exhausted(4, discards).action, CompletionAction::retry);
}

TEST(Disposition, ACrashIsAFailedAttemptThatLeavesASuspect) {
  SeededRandom random(1);
  const Disposition again = dispose_crash("SIGSEGV in bomb.so", 1, policy(), random);
  EXPECT_EQ(again.action, CompletionAction::retry);
  EXPECT_EQ(again.failure->error, "SIGSEGV in bomb.so");
  EXPECT_EQ(again.ending, Ending::retried);
  EXPECT_EQ(again.marks, queue::core::kSuspect);
  const Disposition last = dispose_crash("SIGSEGV in bomb.so", 3, policy(), random);
  EXPECT_EQ(last.action, CompletionAction::dead_letter);
  EXPECT_EQ(last.marks, 0U);
  EXPECT_EQ(dispose_crash("again", 3, policy(config::DeadLetterPolicy::keep), random).marks, queue::core::kSuspect);
  EXPECT_EQ(decide({OutcomeStatus::crashed, {}, "killed"}, 1).action, CompletionAction::retry);
  EXPECT_EQ(decide({OutcomeStatus::crashed, {}, "killed"}, 1).marks, queue::core::kSuspect);
  EXPECT_EQ(decide({OutcomeStatus::fault, {}, "threw"}, 1).marks, 0U);
}

TEST(Disposition, WhatNeverBeganStaysAsItsRecordSays) {
  const queue::Completion kept = completion_of({"a", 1, 0}, put_back(), WallTime(std::chrono::hours(1)));
  EXPECT_EQ(kept.action, CompletionAction::release);
  EXPECT_EQ(kept.marks, std::nullopt);
  EXPECT_EQ(kept.failure.failed_at, WallTime{});
}

TEST(LedgerSnapshot, EveryClaimEndsOnce) {
  LedgerSnapshot ledger;
  ledger.claimed = 10;
  for (std::size_t i = 0; i < kEndings; ++i) {
    ledger.end(static_cast<Ending>(i));
  }
  EXPECT_EQ(ledger.in_flight(), 3U);
  ledger.close();
  const LedgerSnapshot closed = ledger;
  EXPECT_EQ(closed.stranded, 3U);
  EXPECT_EQ(closed.in_flight(), 0U);
  EXPECT_EQ(closed.claimed, closed.ended() + closed.stranded);
  ledger.close();
  EXPECT_EQ(ledger, closed);
}

TEST(LedgerSnapshot, CountsAddUp) {
  LedgerSnapshot ledger;
  ledger.claimed = 3;
  ledger.end(Ending::done);
  ledger.end(Ending::lost);
  LedgerSnapshot total = ledger;
  total += ledger;
  EXPECT_EQ(total.claimed, 6U);
  EXPECT_EQ(total.done, 2U);
  EXPECT_EQ(total.lost, 2U);
  EXPECT_EQ(total.in_flight(), 2U);
}

}  // namespace
}  // namespace sluice::work
