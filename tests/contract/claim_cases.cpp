#include <set>

#include "tests/contract/store_contract.hpp"

// Order, visibility, delay and fencing: what `claim` and `extend` promise.
namespace sluice::test {

using queue::CompletionAction;
using queue::MessageState;
using queue::Receipt;
using queue::SettleStatus;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST_P(StoreContract, ClaimsOldestFirst) {
  send("c");
  send("a");
  send("b");
  EXPECT_THAT(ids_of(claim(standard(), 2)), ElementsAre("c", "a"));
  EXPECT_THAT(ids_of(claim(standard(), 2)), ElementsAre("b"));
  EXPECT_THAT(claim(standard(), 2), IsEmpty());
}

TEST_P(StoreContract, ClaimsInOrderOfSendingWithinOneInstant) {
  if (!traits().stable_ties) {
    GTEST_SKIP() << "this store orders messages of one instant as it likes";
  }
  std::vector<queue::NewMessage> batch(3);
  batch[0].id = "z";
  batch[1].id = "y";
  batch[2].id = "x";
  ASSERT_EQ(desk().send(queue_name(), batch, soon()).size(), 3U);
  EXPECT_THAT(ids_of(claim(standard())), ElementsAre("z", "y", "x"));
}

TEST_P(StoreContract, ClaimCarriesTheWholeMessage) {
  queue::NewMessage message;
  message.id = "A-1";
  message.body = "hello";
  message.attributes = {{"trace", "abc"}, {"empty", ""}, {"größe", "7 °C"}};
  message.group = "customer 7";
  const WallTime sent = clock().wall_now();
  ASSERT_EQ(desk().send(queue_name(), std::span(&message, 1), soon())[0].status, queue::SendStatus::sent);
  clock().advance(5s);
  const queue::Delivery claimed = claim_one(standard());
  EXPECT_EQ(claimed.message.id, "A-1");
  EXPECT_EQ(claimed.message.body, "hello");
  EXPECT_EQ(claimed.message.content_type, queue::kTextPlain);
  EXPECT_EQ(claimed.message.attributes, message.attributes);
  EXPECT_EQ(claimed.message.group, "customer 7");
  EXPECT_EQ(claimed.message.attempt, 1U);
  EXPECT_EQ(claimed.message.sent_at, sent);
  EXPECT_EQ(claimed.receipt.id, "A-1");
  EXPECT_EQ(claimed.invisible_until, clock().wall_now() + 30s);
}

TEST_P(StoreContract, ClaimShowsInTheRecord) {
  send("A-1");
  const queue::StoredMessage before = get("A-1");
  EXPECT_EQ(before.version, 1);
  EXPECT_EQ(before.message.attempt, 0U);
  EXPECT_EQ(before.received_at, std::nullopt);
  EXPECT_EQ(before.state(clock().wall_now()), MessageState::ready);
  const WallTime now = clock().wall_now();
  const queue::Delivery claimed = claim_one(standard());
  const queue::StoredMessage after = get("A-1");
  EXPECT_EQ(after.version, claimed.receipt.version);
  EXPECT_GT(after.version, before.version);
  EXPECT_EQ(after.message.attempt, 1U);
  EXPECT_EQ(after.received_at, now);
  EXPECT_EQ(after.updated_at, now);
  EXPECT_EQ(after.created_at, before.created_at);
  EXPECT_EQ(after.message.sent_at, before.message.sent_at);
  EXPECT_EQ(after.invisible_until, claimed.invisible_until);
  EXPECT_EQ(after.state(now), MessageState::in_flight);
}

TEST_P(StoreContract, ClaimOfNothingTakesNothing) {
  send("A-1");
  EXPECT_THAT(claim(standard(), 0), IsEmpty());
  EXPECT_EQ(get("A-1").message.attempt, 0U);
}

TEST_P(StoreContract, ClaimComesBackWhenItsTimeIsOver) {
  send("A-1");
  const queue::Delivery first = claim_one(standard(), 30s);
  clock().advance(30s - 1ms);
  EXPECT_THAT(claim(standard()), IsEmpty());
  clock().advance(2ms);
  const queue::Delivery second = claim_one(standard());
  EXPECT_EQ(second.message.id, "A-1");
  EXPECT_GT(second.receipt.version, first.receipt.version);
}

TEST_P(StoreContract, ExpiredMessageComesBeforeYoungerOnes) {
  send("old");
  claim_one(standard(), 10s);
  clock().advance(1s);
  send("young");
  clock().advance(20s);
  EXPECT_THAT(ids_of(claim(standard())), ElementsAre("old"));
  EXPECT_THAT(ids_of(claim(standard())), ElementsAre("young"));
}

TEST_P(StoreContract, LeasesOfDifferentLengthExpireEachInItsTime) {
  send("long");
  claim_one(standard(), 100s);
  send("short");
  claim_one(standard(), 1s);
  clock().advance(2s);
  EXPECT_THAT(ids_of(claim(standard())), ElementsAre("short"));
  clock().advance(99s);
  // Suspects by now, which come one by one.
  const std::vector<std::string> ids{claim_one(standard()).message.id, claim_one(standard()).message.id};
  EXPECT_THAT(ids, UnorderedElementsAre("long", "short"));
}

TEST_P(StoreContract, DelayedMessageWaits) {
  send("late", 10s);
  send("now");
  EXPECT_EQ(get("late").state(clock().wall_now()), MessageState::delayed);
  EXPECT_THAT(ids_of(claim(standard())), ElementsAre("now"));
  clock().advance(9s);
  EXPECT_THAT(claim(standard()), IsEmpty());
  clock().advance(1s);
  const queue::Delivery late = claim_one(standard());
  EXPECT_EQ(late.message.id, "late");
  EXPECT_EQ(late.message.attempt, 1U);
}

TEST_P(StoreContract, DelayedMessagesComeInTheOrderOfTheirTimes) {
  send("third", 3s);
  send("first", 1s);
  send("second", 2s);
  clock().advance(10s);
  EXPECT_THAT(ids_of(claim(standard())), ElementsAre("first", "second", "third"));
}

TEST_P(StoreContract, VeryLongDelayAndVisibilityDoNotOverflow) {
  send("never", Duration::max());
  EXPECT_THAT(claim(standard()), IsEmpty());
  send("A-1");
  claim_one(standard(), Duration::max());
  clock().advance(24h);
  EXPECT_THAT(claim(standard()), IsEmpty());
  EXPECT_EQ(stats(standard()).total(), 2U);
}

TEST_P(StoreContract, HalvesAndQueuesAreApart) {
  send_to_dlq("dead", failure("no"));
  send("alive");
  queue::NewMessage elsewhere;
  elsewhere.id = "alive";
  elsewhere.body = "of the other queue";
  ASSERT_EQ(desk().send(under_test().other_queue(), std::span(&elsewhere, 1), soon())[0].status,
            queue::SendStatus::sent);
  EXPECT_THAT(ids_of(claim(dlq())), ElementsAre("dead"));
  EXPECT_EQ(claim_one(standard()).message.body, "body of alive");
  EXPECT_EQ(claim_one({under_test().other_queue()}).message.body, "of the other queue");
}

TEST_P(StoreContract, ExtendProlongsAndVoidsTheOldReceipt) {
  send("A-1");
  const queue::Delivery claimed = claim_one(standard(), 10s);
  clock().advance(5s);
  const auto extended = desk().extend(standard(), std::span(&claimed.receipt, 1), 60s, soon());
  ASSERT_EQ(extended.size(), 1U);
  ASSERT_EQ(extended[0].status, SettleStatus::applied) << extended[0].error.message();
  EXPECT_EQ(extended[0].leased_until, clock().steady_now() + 60s);
  EXPECT_EQ(get("A-1").invisible_until, clock().wall_now() + 60s);
  EXPECT_EQ(extended[0].receipt.id, "A-1");
  EXPECT_EQ(get("A-1").message.attempt, 1U);
  clock().advance(59s);
  EXPECT_THAT(claim(standard()), IsEmpty());
  EXPECT_EQ(settle(standard(), claimed.receipt, CompletionAction::retry), SettleStatus::lost);
  EXPECT_EQ(settle(standard(), extended[0].receipt, CompletionAction::remove), SettleStatus::applied);
  EXPECT_TRUE(absent("A-1"));
}

TEST_P(StoreContract, ExtendMayShorten) {
  send("A-1");
  const queue::Delivery claimed = claim_one(standard(), 600s);
  ASSERT_EQ(desk().extend(standard(), std::span(&claimed.receipt, 1), 1s, soon())[0].status, SettleStatus::applied);
  clock().advance(1s + 1ms);
  EXPECT_EQ(claim_one(standard()).message.id, "A-1");
}

TEST_P(StoreContract, ZombieCannotExtend) {
  send("A-1");
  const queue::Delivery zombie = claim_one(standard(), 10s);
  clock().advance(11s);
  const queue::Delivery holder = claim_one(standard(), 10s);
  const auto result = desk().extend(standard(), std::span(&zombie.receipt, 1), 600s, soon());
  EXPECT_EQ(result.at(0).status, SettleStatus::lost);
  const queue::StoredMessage stored = get("A-1");
  EXPECT_EQ(stored.version, holder.receipt.version);
  EXPECT_EQ(stored.invisible_until, holder.invisible_until);
}

TEST_P(StoreContract, ExtendOfManyAnswersInOrder) {
  const auto ids = send_many(60);
  auto claims = claim_all(standard());
  ASSERT_EQ(claims.size(), 60U);
  std::vector<Receipt> receipts;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    receipts.push_back(claims[i].receipt);
    receipts.back().version += i % 3 == 1 ? 7 : 0;
  }
  receipts.push_back({.id = "nobody", .version = 2, .locator = claims[0].receipt.locator + 100000});
  const auto results = desk().extend(standard(), receipts, 90s, soon());
  ASSERT_EQ(results.size(), 61U);
  for (std::size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(results[i].status, i % 3 == 1 ? SettleStatus::lost : SettleStatus::applied) << i;
    if (i % 3 != 1) {
      EXPECT_EQ(results[i].receipt.id, receipts[i].id);
    }
  }
  EXPECT_EQ(results[60].status, SettleStatus::lost);
  EXPECT_THAT(desk().extend(standard(), {}, 90s, soon()), IsEmpty());
}

TEST_P(StoreContract, ClaimsBatchesOfEverySize) {
  send_many(1052);
  std::set<std::string> seen;
  for (const std::size_t size : {1U, 25U, 26U, 1000U}) {
    std::vector<queue::Delivery> claims;
    while (claims.size() < size) {
      auto more = claim(standard(), size - claims.size());
      ASSERT_FALSE(more.empty());
      std::move(more.begin(), more.end(), std::back_inserter(claims));
    }
    for (const queue::Delivery& claimed : claims) {
      EXPECT_TRUE(seen.insert(claimed.message.id).second) << claimed.message.id << " claimed twice";
      EXPECT_EQ(claimed.message.body, "body of " + claimed.message.id);
    }
  }
  EXPECT_EQ(seen.size(), 1052U);
  EXPECT_THAT(claim(standard(), 1000), IsEmpty());
}

TEST_P(StoreContract, ManyInFlightAtTheHeadHideNothingBehindThem) {
  send_many(300, "a");
  ASSERT_EQ(claim_all(standard(), 300).size(), 300U);
  send("behind");
  EXPECT_THAT(ids_of(claim(standard(), 5)), ElementsAre("behind"));
}

TEST_P(StoreContract, AbsentQueueIsEmptyOrSaysSo) {
  const queue::QueueAddress nowhere{under_test().absent_queue()};
  const auto claims = desk().claim(nowhere, 10, 30s, soon());
  const auto counted = desk().stats(nowhere, soon());
  const auto page = desk().list(nowhere.queue, {.limit = 10}, soon());
  const auto found = desk().get(nowhere.queue, "A-1", soon());
  ASSERT_FALSE(found);
  if (traits().makes_queues) {
    ASSERT_TRUE(claims) << claims.error().message();
    EXPECT_THAT(*claims, IsEmpty());
    ASSERT_TRUE(counted) << counted.error().message();
    EXPECT_EQ(counted->total(), 0U);
    ASSERT_TRUE(page) << page.error().message();
    EXPECT_THAT(page->messages, IsEmpty());
    EXPECT_EQ(found.error().code(), ErrorCode::not_found);
    return;
  }
  ASSERT_FALSE(claims);
  EXPECT_EQ(claims.error().code(), ErrorCode::queue_missing) << claims.error().message();
  ASSERT_FALSE(counted);
  EXPECT_EQ(counted.error().code(), ErrorCode::queue_missing);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code(), ErrorCode::queue_missing);
  EXPECT_EQ(found.error().code(), ErrorCode::queue_missing);
}

TEST_P(StoreContract, PassedDeadlineFailsEveryCallAndChangesNothing) {
  send("A-1");
  const queue::Delivery claimed = claim_one(standard());
  const queue::StoredMessage before = get("A-1");
  const queue::NewMessage message{.id = "A-2", .body = "x"};
  const queue::Completion settlement{.receipt = claimed.receipt};
  const auto claims = desk().claim(standard(), 10, 30s, passed());
  ASSERT_FALSE(claims);
  EXPECT_EQ(claims.error().code(), ErrorCode::timeout);
  const auto sent = desk().send(queue_name(), std::span(&message, 1), passed());
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].status, queue::SendStatus::failed);
  EXPECT_EQ(sent[0].error.code(), ErrorCode::timeout);
  const auto settled = desk().settle(standard(), std::span(&settlement, 1), passed());
  ASSERT_EQ(settled.size(), 1U);
  EXPECT_EQ(settled[0].status, SettleStatus::failed);
  EXPECT_EQ(settled[0].error.code(), ErrorCode::timeout);
  const auto extended = desk().extend(standard(), std::span(&claimed.receipt, 1), 60s, passed());
  ASSERT_EQ(extended.size(), 1U);
  EXPECT_EQ(extended[0].status, SettleStatus::failed);
  EXPECT_EQ(extended[0].error.code(), ErrorCode::timeout);
  EXPECT_EQ(desk().remove(queue_name(), "A-1", passed()).error().code(), ErrorCode::timeout);
  EXPECT_EQ(desk().stats(standard(), passed()).error().code(), ErrorCode::timeout);
  EXPECT_TRUE(absent("A-2"));
  EXPECT_EQ(get("A-1").version, before.version);
}

}  // namespace sluice::test
