#include "host/stores/core/transitions.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "base/timestamp.hpp"

namespace sluice::queue::core {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kNow{std::chrono::seconds(1'700'000'000)};

TEST(Transitions, TheFirstClaimOfASuspectTakesThePlaceOfTheOneThatNobodyKnowsOf) {
  const MessageState lapsed{.received = true, .receives = 3};
  EXPECT_EQ(receives_when_claimed(lapsed, false), 3U);
  EXPECT_EQ(receives_when_claimed(lapsed, true), 4U) << "a client is at work as soon as it has the message";
  EXPECT_EQ(receives_when_claimed({.received = true, .receives = 3, .marks = kSuspect}, false), 4U)
      << "a marked one was counted by its own claims";
  EXPECT_EQ(receives_when_claimed({.received = true}, false), 1U) << "an import may say received and never counted";
}

TEST(Transitions, AClaimMarksASuspectAndNobodyElse) {
  const ClaimTerms terms{.now = kNow, .until = kNow + 30s};
  EXPECT_EQ(claim({.received = true, .receives = 1}, terms).marks, kSuspect);
  EXPECT_FALSE(claim({.receives = 1}, terms).marks);
}

TEST(Transitions, AReleaseGivesTheAttemptBackAndForgetsNoFailure) {
  const Completion release{.receipt = {}, .action = CompletionAction::release, .failure = {.error = "shutting down"}};
  const StateChange change = end(release, 3, kNow);
  EXPECT_EQ(change.receives, 2U);
  EXPECT_FALSE(change.failure) << "a release is no failure";
  EXPECT_FALSE(end(release, 0, kNow).receives) << "nobody knows the count: it stays";
}

TEST(Transitions, DelaysReachToTheEndOfTimeAndNoFurther) {
  const Completion retry{.receipt = {}, .action = CompletionAction::retry, .delay = Duration::max()};
  EXPECT_EQ(end(retry, 1, kNow).hidden_until, std::optional(std::optional(kEndOfTime)));
  EXPECT_EQ(change({.id = "a", .action = ChangeAction::delay, .after = Duration::max()}, kNow).sent_at, kEndOfTime);
}

TEST(Transitions, OnlyWhatStartsALifeAnewEndsASuspicion) {
  for (const ChangeAction action : {ChangeAction::set_visibility, ChangeAction::delay}) {
    EXPECT_FALSE(change({.id = "a", .action = action, .after = 5s}, kNow).marks);
  }
  for (const ChangeAction action :
       {ChangeAction::move_to_front, ChangeAction::dead_letter, ChangeAction::redrive, ChangeAction::reset}) {
    EXPECT_EQ(change({.id = "a", .action = action}, kNow).marks, Marks{0});
  }
}

TEST(Transitions, ARedriveIsRefusedOutsideTheDlqAndInFlight) {
  EXPECT_EQ(judge(ChangeAction::redrive, {.half = Half::standard}, kNow), Verdict::not_in_dlq);
  MessageState state{.half = Half::dlq, .hidden_until = kNow, .received = true};
  EXPECT_EQ(judge(ChangeAction::redrive, state, kNow), Verdict::in_flight) << "hidden to the very instant";
  EXPECT_EQ(judge(ChangeAction::redrive, state, kNow + 1ns), Verdict::apply);
  EXPECT_EQ(judge(ChangeAction::dead_letter, state, kNow), Verdict::unchanged);
}

}  // namespace
}  // namespace sluice::queue::core
