#include "tests/contract/store_contract.hpp"

// What `settle` promises: the four actions, fencing, repeats, order of results.
namespace sluice::test {

using queue::Completion;
using queue::CompletionAction;
using queue::Half;
using queue::MessageState;
using queue::SettleStatus;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::IsEmpty;

TEST_P(StoreContract, RemoveDeletes) {
  send("A-1");
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::remove), SettleStatus::applied);
  EXPECT_TRUE(absent("A-1"));
  EXPECT_EQ(stats(standard()).total(), 0U);
  clock().advance(60s);
  EXPECT_THAT(claim(standard()), IsEmpty());
}

TEST_P(StoreContract, RetryCountsTheAttemptAndKeepsTheFailure) {
  send("A-1");
  const queue::Failure why = failure("connection refused");
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::retry, {}, why), SettleStatus::applied);
  const queue::StoredMessage stored = get("A-1");
  EXPECT_EQ(stored.state(clock().wall_now()), MessageState::ready);
  EXPECT_EQ(stored.failure.error, why.error);
  EXPECT_EQ(stored.failure.handler, why.handler);
  EXPECT_EQ(stored.failure.host, why.host);
  EXPECT_EQ(stored.failure.attempts, why.attempts);
  EXPECT_EQ(stored.failure.failed_at, why.failed_at);
  EXPECT_EQ(claim_one(standard()).message.attempt, 2U);
}

TEST_P(StoreContract, RetryWithDelayWaitsAndIsNotInFlight) {
  send("A-1");
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::retry, 10s), SettleStatus::applied);
  EXPECT_EQ(get("A-1").state(clock().wall_now()), MessageState::delayed);
  clock().advance(9s);
  EXPECT_THAT(claim(standard()), IsEmpty());
  clock().advance(1s + 1ms);
  EXPECT_EQ(claim_one(standard()).message.attempt, 2U);
}

TEST_P(StoreContract, RetryKeepsThePlaceInTheOrder) {
  send("first");
  send("second");
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::retry), SettleStatus::applied);
  EXPECT_THAT(ids_of(claim(standard())), ElementsAre("first", "second"));
}

TEST_P(StoreContract, EmptyFailureLeavesWhatTheRecordSays) {
  send("A-1");
  settle(standard(), claim_one(standard()).receipt, CompletionAction::retry, {}, failure("the first reason"));
  settle(standard(), claim_one(standard()).receipt, CompletionAction::retry);
  EXPECT_EQ(get("A-1").failure.error, "the first reason");
  settle(standard(), claim_one(standard()).receipt, CompletionAction::retry, {}, failure("the second reason"));
  EXPECT_EQ(get("A-1").failure.error, "the second reason");
}

TEST_P(StoreContract, ReleaseGivesTheAttemptBack) {
  send("A-1");
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::release), SettleStatus::applied);
  EXPECT_EQ(get("A-1").message.attempt, 0U);
  EXPECT_EQ(claim_one(standard()).message.attempt, 1U);
}

TEST_P(StoreContract, ReleaseWithDelayWaits) {
  send("A-1");
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::release, 10s), SettleStatus::applied);
  clock().advance(9s);
  EXPECT_THAT(claim(standard()), IsEmpty());
  EXPECT_EQ(stats(standard()).delayed, 1U);
  clock().advance(1s + 1ms);
  EXPECT_EQ(claim_one(standard()).message.attempt, 1U);
}

TEST_P(StoreContract, DeadLetterMovesWithTheFailure) {
  send("A-1");
  const queue::Delivery claimed = claim_one(standard());
  clock().advance(1s);
  const queue::Failure why = failure("mismatch");
  const WallTime moved_at = clock().wall_now();
  EXPECT_EQ(settle(standard(), claimed.receipt, CompletionAction::dead_letter, {}, why), SettleStatus::applied);
  const queue::StoredMessage stored = get("A-1");
  EXPECT_EQ(stored.half, Half::dlq);
  EXPECT_EQ(stored.message.attempt, 0U);
  EXPECT_EQ(stored.message.sent_at, moved_at);
  EXPECT_EQ(stored.failure.error, "mismatch");
  EXPECT_EQ(stored.failure.attempts, 3U);
  EXPECT_EQ(stored.state(clock().wall_now()), MessageState::ready);
  clock().advance(60s);
  EXPECT_THAT(claim(standard()), IsEmpty());
  EXPECT_EQ(stats(standard()).total(), 0U);
  EXPECT_EQ(stats(dlq()).ready, 1U);
}

TEST_P(StoreContract, DlqIsWorkedOffLikeAQueue) {
  send_to_dlq("A-1", failure("no"));
  const queue::Delivery claimed = claim_one(dlq());
  EXPECT_EQ(claimed.message.attempt, 1U);
  EXPECT_EQ(settle(standard(), claimed.receipt, CompletionAction::retry), SettleStatus::lost) << "the wrong half";
  EXPECT_EQ(settle(dlq(), claimed.receipt, CompletionAction::remove), SettleStatus::applied);
  EXPECT_TRUE(absent("A-1"));
}

TEST_P(StoreContract, DeadLetterInTheDlqMakesItVisibleThereAgain) {
  send_to_dlq("A-1", failure("no"));
  EXPECT_EQ(settle(dlq(), claim_one(dlq()).receipt, CompletionAction::dead_letter, {}, failure("still no")),
            SettleStatus::applied);
  const queue::StoredMessage stored = get("A-1");
  EXPECT_EQ(stored.half, Half::dlq);
  EXPECT_EQ(stored.failure.error, "still no");
  EXPECT_EQ(stored.state(clock().wall_now()), MessageState::ready);
  EXPECT_EQ(claim_one(dlq()).message.id, "A-1");
}

TEST_P(StoreContract, RetryInTheDlqStaysThere) {
  send_to_dlq("A-1", failure("no"));
  EXPECT_EQ(settle(dlq(), claim_one(dlq()).receipt, CompletionAction::retry, 5s), SettleStatus::applied);
  EXPECT_THAT(claim(dlq()), IsEmpty());
  clock().advance(6s);
  EXPECT_EQ(claim_one(dlq()).message.attempt, 2U);
  EXPECT_THAT(claim(standard()), IsEmpty());
}

TEST_P(StoreContract, ZombieSettlesNothing) {
  for (const CompletionAction action :
       {CompletionAction::remove, CompletionAction::retry, CompletionAction::release, CompletionAction::dead_letter}) {
    const std::string id = "A-" + std::to_string(static_cast<int>(action));
    send(id);
    const queue::Delivery zombie = claim_one(standard(), 10s);
    clock().advance(11s);
    const queue::Delivery holder = claim_one(standard(), 10s);
    EXPECT_EQ(settle(standard(), zombie.receipt, action, 3600s, failure("zombie")), SettleStatus::lost);
    const queue::StoredMessage stored = get(id);
    EXPECT_EQ(stored.version, holder.receipt.version);
    EXPECT_EQ(stored.message.attempt, holder.message.attempt);
    EXPECT_EQ(stored.invisible_until, holder.invisible_until);
    EXPECT_TRUE(stored.failure.empty());
    EXPECT_EQ(settle(standard(), holder.receipt, CompletionAction::remove), SettleStatus::applied);
  }
}

TEST_P(StoreContract, ExpiredLeaseThatNobodyTookStillSettles) {
  send("A-1");
  const queue::Delivery claimed = claim_one(standard(), 1s);
  clock().advance(60s);
  EXPECT_EQ(settle(standard(), claimed.receipt, CompletionAction::remove), SettleStatus::applied);
  EXPECT_TRUE(absent("A-1"));
}

TEST_P(StoreContract, SettlingTwiceHarmsNothing) {
  send("gone");
  const queue::Delivery gone = claim_one(standard());
  EXPECT_EQ(settle(standard(), gone.receipt, CompletionAction::remove), SettleStatus::applied);
  EXPECT_THAT(settle(standard(), gone.receipt, CompletionAction::remove),
              AnyOf(Eq(SettleStatus::applied), Eq(SettleStatus::lost)));
  // The id may have been sent again in between; the old receipt must not reach the new message.
  send("gone");
  EXPECT_THAT(settle(standard(), gone.receipt, CompletionAction::remove),
              AnyOf(Eq(SettleStatus::applied), Eq(SettleStatus::lost)));
  EXPECT_EQ(get("gone").message.attempt, 0U);
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::remove), SettleStatus::applied);

  send("later");
  const queue::Delivery later = claim_one(standard());
  EXPECT_EQ(settle(standard(), later.receipt, CompletionAction::retry, 10s), SettleStatus::applied);
  settle(standard(), later.receipt, CompletionAction::retry, 20s);
  settle(standard(), later.receipt, CompletionAction::release, 20s);
  const queue::StoredMessage stored = get("later");
  EXPECT_EQ(stored.message.attempt, 1U);
  EXPECT_EQ(stored.half, Half::standard);
}

TEST_P(StoreContract, MixedSettlementsAnswerInOrder) {
  const auto ids = send_many(50);
  const auto claims = claim_all(standard());
  ASSERT_EQ(claims.size(), 50U);
  std::vector<Completion> settlements;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    Completion settlement{.receipt = claims[i].receipt};
    switch (i % 5) {
      case 1:
        settlement.action = CompletionAction::retry;
        settlement.delay = 10s;
        break;
      case 2:
        settlement.action = CompletionAction::release;
        break;
      case 3:
        settlement.action = CompletionAction::dead_letter;
        settlement.failure = failure("no");
        break;
      case 4:
        settlement.action = CompletionAction::retry;
        settlement.receipt.version += 3;
        break;
      default:
        break;
    }
    settlements.push_back(settlement);
  }
  const auto results = desk().settle(standard(), settlements, soon());
  ASSERT_EQ(results.size(), 50U);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].status, i % 5 == 4 ? SettleStatus::lost : SettleStatus::applied)
        << i << ' ' << results[i].error.message();
  }
  clock().advance(1ms);
  EXPECT_EQ(stats(standard()).delayed, 10U);
  EXPECT_EQ(stats(standard()).ready, 10U);
  EXPECT_EQ(stats(standard()).in_flight, 10U);
  EXPECT_EQ(stats(dlq()).ready, 10U);
  EXPECT_THAT(desk().settle(standard(), {}, soon()), IsEmpty());
}

TEST_P(StoreContract, SettlesBatchesOfEverySize) {
  send_many(1052);
  for (const std::size_t size : {1U, 25U, 26U, 1000U}) {
    const auto claims = claim_all(standard(), size);
    ASSERT_EQ(claims.size(), size);
    std::vector<Completion> settlements;
    settlements.reserve(claims.size());
    for (const queue::Delivery& claimed : claims) {
      settlements.push_back({.receipt = claimed.receipt});
    }
    const auto results = desk().settle(standard(), settlements, soon());
    ASSERT_EQ(results.size(), size);
    for (const auto& result : results) {
      EXPECT_EQ(result.status, SettleStatus::applied) << result.error.message();
    }
  }
  EXPECT_EQ(stats(standard()).total(), 0U);
}

TEST_P(StoreContract, SettlingTheSameReceiptTwiceInOneBatchHarmsNothing) {
  send("A-1");
  send("A-2");
  const auto claims = claim(standard());
  ASSERT_EQ(claims.size(), 2U);
  const std::vector<Completion> settlements{
      {.receipt = claims[0].receipt}, {.receipt = claims[1].receipt}, {.receipt = claims[0].receipt}};
  const auto results = desk().settle(standard(), settlements, soon());
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].status, SettleStatus::applied) << results[0].error.message();
  EXPECT_EQ(results[1].status, SettleStatus::applied) << results[1].error.message();
  EXPECT_NE(results[2].status, SettleStatus::failed) << results[2].error.message();
  EXPECT_EQ(stats(standard()).total(), 0U);
}

TEST_P(StoreContract, NothingHappensToAMessageThatNeverWas) {
  const queue::Receipt receipt{.id = "ghost", .version = 2, .locator = 7};
  EXPECT_EQ(settle(standard(), receipt, CompletionAction::retry), SettleStatus::lost);
  EXPECT_EQ(settle(standard(), receipt, CompletionAction::dead_letter, {}, failure("x")), SettleStatus::lost);
  EXPECT_TRUE(absent("ghost"));
  EXPECT_EQ(stats(standard()).total() + stats(dlq()).total(), 0U);
}

TEST_P(StoreContract, LongFailureIsKeptAtLeastInPart) {
  send("A-1");
  const std::string error = "start " + std::string(5000, 'e');
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::dead_letter, {}, failure(error)),
            SettleStatus::applied);
  EXPECT_EQ(get("A-1").failure.error.substr(0, 100), error.substr(0, 100));
}

}  // namespace sluice::test
