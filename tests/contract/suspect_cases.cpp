#include "host/stores/core/outcomes.hpp"
#include "tests/contract/store_contract.hpp"

// Whoever had a message before ended without an outcome: it is a suspect, handed out alone, and only its own starts
// count.
namespace sluice::test {

using queue::ClaimRequest;
using queue::Completion;
using queue::CompletionAction;
using queue::Delivery;
using queue::SettleStatus;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_P(StoreContract, SuspectIsWhoseHolderEndedWithoutAWord) {
  send("first");
  EXPECT_FALSE(claim_and_die(standard()).suspect);
  const Delivery again = claim_one(standard());
  EXPECT_TRUE(again.suspect);
  EXPECT_EQ(again.message.attempt, 1U) << "it takes the place of the start that nobody knows of";
}

TEST_P(StoreContract, SuspectIsNobodyWhoWasSettled) {
  for (const CompletionAction action : {CompletionAction::retry, CompletionAction::release}) {
    send("a" + std::to_string(static_cast<int>(action)));
    EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, action), SettleStatus::applied);
    const Delivery again = claim_one(standard());
    EXPECT_FALSE(again.suspect);
    EXPECT_EQ(settle(standard(), again.receipt, CompletionAction::remove), SettleStatus::applied);
  }
}

TEST_P(StoreContract, SuspectsOwnStartsCount) {
  send("bomb");
  claim_and_die(standard());
  EXPECT_EQ(claim_and_die(standard()).message.attempt, 1U);
  EXPECT_EQ(claim_and_die(standard()).message.attempt, 2U);
  const Delivery last = claim_one(standard());
  EXPECT_EQ(last.message.attempt, 3U);
  EXPECT_TRUE(last.suspect);
}

TEST_P(StoreContract, SuspectOfAClientCountsFromTheFirst) {
  send("a");
  claim_and_die(standard());
  const auto claimed = claim_as(standard(), {.max = 1, .counts = true}).deliveries;
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_TRUE(claimed.front().suspect);
  EXPECT_EQ(claimed.front().message.attempt, 2U);
}

TEST_P(StoreContract, SuspectIsClaimedAlone) {
  send("old");
  const Delivery held = claim_one(standard(), 1s);
  send_many(3);
  clock().advance(2s);
  std::size_t alone = 0;
  std::size_t together = 0;
  for (int round = 0; round < 10; ++round) {
    const auto claimed = claim_as(standard(), {.max = 10}).deliveries;
    for (const Delivery& delivery : claimed) {
      EXPECT_EQ(delivery.suspect, delivery.message.id == held.message.id);
      if (delivery.suspect) {
        EXPECT_EQ(claimed.size(), 1U);
        ++alone;
      } else {
        ++together;
      }
    }
  }
  EXPECT_EQ(alone, 1U);
  EXPECT_EQ(together, 3U);
}

TEST_P(StoreContract, SuspectsArePassedOverWhenNotWanted) {
  send("old");
  const Delivery held = claim_one(standard(), 1s);
  send_many(3);
  clock().advance(2s);
  std::vector<std::string> ids;
  for (int round = 0; round < 5; ++round) {
    for (const Delivery& delivery : claim_as(standard(), {.max = 10, .suspects = false}).deliveries) {
      EXPECT_FALSE(delivery.suspect);
      ids.push_back(delivery.message.id);
    }
  }
  EXPECT_THAT(ids, ElementsAre("m0000", "m0001", "m0002"));
  EXPECT_TRUE(claim_one(standard()).suspect);
}

TEST_P(StoreContract, SuspicionIsKeptOnDemandAndEndsOtherwise) {
  send("a");
  for (const CompletionAction action : {CompletionAction::retry, CompletionAction::release}) {
    Completion kept{.receipt = claim_one(standard()).receipt, .action = action, .marks = queue::core::kSuspect};
    EXPECT_EQ(desk().settle(standard(), std::span(&kept, 1), soon()).front().status, SettleStatus::applied);
    EXPECT_EQ(get("a").marks, queue::core::kSuspect);
    EXPECT_FALSE(get("a").received_at);
    clock().advance(1ms);
    const Delivery again = claim_one(standard());
    EXPECT_TRUE(again.suspect);
    EXPECT_EQ(again.message.attempt, 2U) << "a known end: the claim counts as any other";
    EXPECT_EQ(settle(standard(), again.receipt, CompletionAction::release), SettleStatus::applied);
    EXPECT_EQ(get("a").marks, 0U);
    const Delivery clean = claim_one(standard());
    EXPECT_FALSE(clean.suspect);
    EXPECT_EQ(settle(standard(), clean.receipt, CompletionAction::release), SettleStatus::applied);
  }
}

TEST_P(StoreContract, WhatGoesBackUnstartedStaysAsItsRecordSays) {
  // A mark beside the suspicion, which nobody knows yet: stores keep marks as one number.
  constexpr queue::Marks kMarks = queue::core::kSuspect | 4;
  queue::StoredMessage record;
  record.message = {.id = "a", .body = "body", .sent_at = clock().wall_now()};
  record.version = 1;
  record.created_at = record.updated_at = clock().wall_now();
  record.marks = kMarks;
  ASSERT_EQ(desk().put(queue_name(), std::span(&record, 1), queue::PutMode::insert, soon()).front().status,
            queue::PutStatus::written);
  clock().advance(1ms);
  for (const std::optional<queue::Marks> marks : {std::optional<queue::Marks>(), std::optional<queue::Marks>(0)}) {
    const Delivery held = claim_one(standard());
    EXPECT_TRUE(held.suspect);
    const Completion back{.receipt = held.receipt, .action = CompletionAction::release, .marks = marks};
    ASSERT_EQ(desk().settle(standard(), std::span(&back, 1), soon()).front().status, SettleStatus::applied);
    EXPECT_EQ(get("a").marks, marks.value_or(kMarks));
    EXPECT_EQ(get("a").message.attempt, 0U);
    clock().advance(1ms);
  }
  EXPECT_FALSE(claim_one(standard()).suspect);
}

TEST_P(StoreContract, SuspicionEndsWithAnOperatorsChange) {
  send("a");
  const Completion kept{
      .receipt = claim_one(standard()).receipt, .action = CompletionAction::retry, .marks = queue::core::kSuspect};
  ASSERT_EQ(desk().settle(standard(), std::span(&kept, 1), soon()).front().status, SettleStatus::applied);
  clock().advance(1ms);
  EXPECT_EQ(change({.id = "a", .action = queue::ChangeAction::reset}).status, queue::ChangeStatus::applied);
  EXPECT_EQ(get("a").marks, 0U);
  EXPECT_FALSE(claim_one(standard()).suspect);
}

TEST_P(StoreContract, ClaimTellsUntilWhenTheLeaseIsOurs) {
  send("a");
  const SteadyTime asked = clock().steady_now();
  const Delivery held = claim_one(standard(), 30s);
  EXPECT_EQ(held.leased_until, asked + 30s);
  clock().advance(7s);
  const auto extended = desk().extend(standard(), std::span(&held.receipt, 1), 30s, soon()).front();
  ASSERT_EQ(extended.status, SettleStatus::applied) << extended.error.message();
  EXPECT_EQ(extended.leased_until, asked + 37s);
}

TEST_P(StoreContract, ClaimHoldsToTheBytesThatAreWanted) {
  if (!traits().keeps_to_bytes) {
    GTEST_SKIP() << "this store learns how large messages are by claiming some";
  }
  for (const char* id : {"a", "b", "c", "d"}) {
    send_content(id, std::string(1000, 'x'), queue::kTextPlain);
  }
  std::size_t claims = 0;
  std::size_t messages = 0;
  while (messages < 4 && claims < 10) {
    const auto claimed = claim_as(standard(), {.max = 10, .bytes = 1500}).deliveries;
    EXPECT_LE(claimed.size(), 2U) << "the last one may go beyond";
    messages += claimed.size();
    ++claims;
  }
  EXPECT_EQ(messages, 4U);
  EXPECT_THAT(claim_as(standard(), {.max = 10}).deliveries, IsEmpty());
}

TEST_P(StoreContract, SuspectStaysOneWhenAnOperatorPutsItOff) {
  send("bomb");
  claim_and_die(standard());
  claim_and_die(standard());  // by now its record says that it is one
  ASSERT_EQ(change({.id = "bomb", .action = queue::ChangeAction::delay, .after = 10s}).status,
            queue::ChangeStatus::applied);
  clock().advance(11s);
  const Delivery again = claim_one(standard());
  EXPECT_TRUE(again.suspect) << "waiting does not make a message that killed hosts harmless";
  EXPECT_EQ(again.message.attempt, 2U);
}

TEST_P(StoreContract, SuspectIsNoneAnyMoreOnceAnOperatorStartsItsLifeAnew) {
  using queue::ChangeAction;
  for (const ChangeAction action : {ChangeAction::reset, ChangeAction::move_to_front, ChangeAction::dead_letter}) {
    const std::string id = "after" + std::to_string(static_cast<int>(action));
    send(id);
    claim_and_die(standard());
    claim_and_die(standard());
    ASSERT_EQ(change({.id = id, .action = action}).status, queue::ChangeStatus::applied);
    EXPECT_EQ(get(id).marks, 0U);
    if (action == ChangeAction::dead_letter) {
      ASSERT_EQ(change({.id = id, .action = ChangeAction::redrive}).status, queue::ChangeStatus::applied);
    }
    const Delivery again = claim_one(standard());
    EXPECT_FALSE(again.suspect) << id;
    EXPECT_EQ(settle(standard(), again.receipt, CompletionAction::remove), SettleStatus::applied);
  }
}

}  // namespace sluice::test
