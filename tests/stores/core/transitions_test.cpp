#include "host/stores/core/transitions.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>

#include "base/timestamp.hpp"

namespace sluice::queue::core {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kTransitionsNow{std::chrono::seconds(1'700'000'000)};

TEST(Transitions, TheFirstClaimOfASuspectTakesThePlaceOfTheOneThatNobodyKnowsOf) {
  const MessageState lapsed{.received_at = kTransitionsNow, .receives = 3};
  EXPECT_EQ(receives_when_claimed(lapsed, false), 3U);
  EXPECT_EQ(receives_when_claimed(lapsed, true), 4U) << "a client is at work as soon as it has the message";
  EXPECT_EQ(receives_when_claimed({.received_at = kTransitionsNow, .receives = 3, .marks = kSuspect}, false), 4U)
      << "a marked one was counted by its own claims";
  EXPECT_EQ(receives_when_claimed({.received_at = kTransitionsNow}, false), 1U)
      << "an import may say received and never counted";
}

TEST(Transitions, AClaimMarksASuspectAndNobodyElse) {
  const ClaimTerms terms{.now = kTransitionsNow, .until = kTransitionsNow + 30s};
  EXPECT_EQ(claim({.received_at = kTransitionsNow, .receives = 1}, terms).marks, kSuspect);
  EXPECT_FALSE(claim({.receives = 1}, terms).marks);
}

TEST(Transitions, AReleaseGivesTheAttemptBackAndForgetsNoFailure) {
  const Completion release{.receipt = {}, .action = CompletionAction::release, .failure = {.error = "shutting down"}};
  const StateChange change = end(release, {.receives = 3}, kTransitionsNow);
  EXPECT_EQ(change.receives, 2U);
  EXPECT_FALSE(change.failure) << "a release is no failure";
  EXPECT_FALSE(end(release, {.receives = 0}, kTransitionsNow).receives) << "nobody knows the count: it stays";
}

TEST(Transitions, ACheckpointChangesNothingElseAndOutlivesEveryEndThatKeepsTheRecord) {
  MessageState state{.received_at = kTransitionsNow, .receives = 2, .marks = kSuspect, .failure = {.error = "no"}};
  const MessageState before = state;
  apply(end({.action = CompletionAction::keep, .checkpoint = "half"}, state, kTransitionsNow), state);
  EXPECT_EQ(state.checkpoint, "half");
  EXPECT_EQ(state.version, before.version + 1);
  EXPECT_EQ(state.received_at, before.received_at);
  EXPECT_EQ(state.receives, before.receives);
  EXPECT_EQ(state.marks, before.marks);
  EXPECT_EQ(state.failure.error, "no");
  for (const CompletionAction action :
       {CompletionAction::retry, CompletionAction::release, CompletionAction::dead_letter}) {
    MessageState ended = state;
    apply(end({.action = action}, state, kTransitionsNow), ended);
    EXPECT_EQ(ended.checkpoint, "half");
  }
  for (const ChangeAction action : {ChangeAction::redrive, ChangeAction::delay, ChangeAction::dead_letter}) {
    EXPECT_FALSE(change({.action = action}, state, kTransitionsNow).checkpoint);
  }
  apply(change({.action = ChangeAction::reset}, state, kTransitionsNow), state);
  EXPECT_EQ(state.checkpoint, "");
}

TEST(Transitions, BehindTheHighestVersionComesTheFirstAgain) {
  MessageState state{.version = std::numeric_limits<std::int64_t>::max()};
  apply(extension(kTransitionsNow), state);
  EXPECT_EQ(state.version, 1) << "as the stores count";
}

TEST(Transitions, DelaysReachToTheEndOfTimeAndNoFurther) {
  const Completion retry{.receipt = {}, .action = CompletionAction::retry, .delay = Duration::max()};
  EXPECT_EQ(end(retry, {.receives = 1}, kTransitionsNow).hidden_until, std::optional(std::optional(kEndOfTime)));
  EXPECT_EQ(change({.id = "a", .action = ChangeAction::delay, .after = Duration::max()}, {}, kTransitionsNow).sent_at,
            kEndOfTime);
}

TEST(Transitions, OnlyWhatStartsALifeAnewEndsASuspicion) {
  for (const ChangeAction action : {ChangeAction::set_visibility, ChangeAction::delay}) {
    EXPECT_FALSE(change({.id = "a", .action = action, .after = 5s}, {}, kTransitionsNow).marks);
  }
  for (const ChangeAction action :
       {ChangeAction::move_to_front, ChangeAction::dead_letter, ChangeAction::redrive, ChangeAction::reset}) {
    EXPECT_EQ(change({.id = "a", .action = action}, {}, kTransitionsNow).marks, Marks{0});
  }
}

TEST(Transitions, ARedriveIsRefusedOutsideTheDlqAndInFlight) {
  const auto told = [](ChangeAction action, const MessageState& state, WallTime now) {
    return foregone({.id = "a", .action = action}, state, "orders", now);
  };
  EXPECT_EQ(told(ChangeAction::redrive, {}, kTransitionsNow)->error.message(), not_in_dlq("orders", "a").message());
  const MessageState state{
      .half = Half::dlq, .hidden_until = kTransitionsNow, .received_at = kTransitionsNow, .version = 7};
  const auto refused = told(ChangeAction::redrive, state, kTransitionsNow);
  ASSERT_TRUE(refused) << "hidden to the very instant";
  EXPECT_EQ(refused->error.message(), in_flight_in_dlq("orders", "a").message());
  EXPECT_FALSE(told(ChangeAction::redrive, state, kTransitionsNow + 1ns));
  const auto unchanged = told(ChangeAction::dead_letter, state, kTransitionsNow);
  ASSERT_TRUE(unchanged);
  EXPECT_EQ(unchanged->status, ChangeStatus::applied);
  EXPECT_EQ(unchanged->version, 7);
}

TEST(Transitions, AChangeOfAnotherVersionIsAConflictWhateverElseIsWrong) {
  const auto refused =
      foregone({.id = "a", .action = ChangeAction::redrive, .version = 6}, {.version = 7}, "orders", kTransitionsNow);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->error.message(), changed_since("orders", "a").message());
}

TEST(Transitions, ADeadLetterHoldsItsGroupFromTheStandardHalfAndLetsItGoWhenItLeaves) {
  const Completion dead{.receipt = {}, .action = CompletionAction::dead_letter, .hold_group = true};
  EXPECT_TRUE(end(dead, {.receives = 1}, kTransitionsNow).holds_group);
  EXPECT_FALSE(end(dead, {.half = Half::dlq, .receives = 1}, kTransitionsNow).holds_group)
      << "it does already, or never did";
  const MessageState held{.half = Half::dlq, .group = "g", .held_place = kTransitionsNow - 60s};
  EXPECT_EQ(change({.id = "a", .action = ChangeAction::redrive}, held, kTransitionsNow).sent_at, kTransitionsNow - 60s);
  MessageState after = held;
  EXPECT_TRUE(lets_group_go(held, nullptr));
  EXPECT_FALSE(lets_group_go(held, &after));
  after.group = "h";
  EXPECT_TRUE(lets_group_go(held, &after));
}

TEST(Transitions, PlacesFollowTheOneBeforeUnlessItWasNotSentByTheClock) {
  EXPECT_EQ(place_behind(kTransitionsNow + 5s, kTransitionsNow), kTransitionsNow + 5s);
  EXPECT_EQ(place_behind(kTransitionsNow - 5s, kTransitionsNow), kTransitionsNow);
  EXPECT_EQ(place_behind(kTransitionsNow + 2h, kTransitionsNow), kTransitionsNow);
  EXPECT_EQ(place_before(kTransitionsNow - 5s, kTransitionsNow), kTransitionsNow - 5s - 1ns);
  EXPECT_EQ(place_before(kTransitionsNow + 5s, kTransitionsNow), kTransitionsNow - 1ns);
  EXPECT_EQ(place_before(std::nullopt, kTransitionsNow), kTransitionsNow - 1ns);
}

TEST(Transitions, WhatIsHiddenHoldsUpItsGroupUnlessItWasSentForLater) {
  EXPECT_TRUE((MessageState{.sent_at = kTransitionsNow, .hidden_until = kTransitionsNow + 30s}.holds_up_its_group()))
      << "a retry";
  EXPECT_FALSE(
      (MessageState{.sent_at = kTransitionsNow + 30s, .hidden_until = kTransitionsNow + 30s}.holds_up_its_group()));
  EXPECT_FALSE((MessageState{.sent_at = kTransitionsNow}.holds_up_its_group()));
}

}  // namespace
}  // namespace sluice::queue::core
