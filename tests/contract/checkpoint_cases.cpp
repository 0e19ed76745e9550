#include "tests/contract/effect_contract.hpp"

// What `Source::checkpoint` promises: progress is stored with the message, and what is committed with it is so once.
namespace sluice::test {

using queue::ChangeAction;
using queue::CompletionAction;
using queue::Delivery;
using queue::Effects;
using queue::Receipt;
using queue::SettleResult;
using queue::SettleStatus;
using queue::StoredMessage;
using ::testing::HasSubstr;

TEST_P(CheckpointContract, IsSeenByTheNextAttempt) {
  send("A-1");
  const Delivery first = claim_one(standard());
  EXPECT_EQ(first.message.checkpoint, "");
  const StoredMessage before = get("A-1");
  const Receipt receipt = stored(first.receipt, "half");
  StoredMessage after = get("A-1");
  EXPECT_EQ(after.message.checkpoint, "half");
  EXPECT_EQ(after.version, receipt.version);
  EXPECT_EQ(after.invisible_until, before.invisible_until);
  EXPECT_EQ(after.received_at, before.received_at);
  EXPECT_EQ(after.message.attempt, before.message.attempt);
  EXPECT_EQ(after.marks, before.marks);
  EXPECT_EQ(after.message.body, before.message.body);
  EXPECT_EQ(after.message.attributes, before.message.attributes);
  EXPECT_TRUE(claim(standard()).empty()) << "it stays with whoever has it";
  // As after an extension, the receipt before is void.
  EXPECT_EQ(settle(standard(), first.receipt, CompletionAction::retry), SettleStatus::lost);
  EXPECT_EQ(settle(standard(), receipt, CompletionAction::retry), SettleStatus::applied);
  const Delivery second = claim_one(standard());
  EXPECT_EQ(second.message.checkpoint, "half");
  EXPECT_EQ(second.message.attempt, 2U);
}

TEST_P(CheckpointContract, OutlivesWhateverBecomesOfAnAttempt) {
  send("A-1");
  Delivery delivery = claim_one(standard());
  const Receipt receipt = stored(delivery.receipt, "half");
  ASSERT_EQ(settle(standard(), receipt, CompletionAction::release, 5s), SettleStatus::applied);
  clock().advance(6s);
  delivery = claim_one(standard());
  EXPECT_EQ(delivery.message.checkpoint, "half");
  ASSERT_EQ(settle(standard(), delivery.receipt, CompletionAction::retry, {}, failure("no")), SettleStatus::applied);
  EXPECT_EQ(claim_and_die(standard()).message.checkpoint, "half");
  delivery = claim_one(standard());
  EXPECT_TRUE(delivery.suspect);
  EXPECT_EQ(delivery.message.checkpoint, "half");
  ASSERT_EQ(settle(standard(), delivery.receipt, CompletionAction::dead_letter, {}, failure("never")),
            SettleStatus::applied);
  EXPECT_EQ(get("A-1").message.checkpoint, "half");
  const Delivery dead = claim_one(dlq());
  EXPECT_EQ(dead.message.checkpoint, "half");
  ASSERT_EQ(settle(dlq(), dead.receipt, CompletionAction::release), SettleStatus::applied);
  change_one(ChangeAction::redrive);
  EXPECT_EQ(claim_one(standard()).message.checkpoint, "half");
}

TEST_P(CheckpointContract, TakesThePlaceOfTheOneBefore) {
  send("A-1");
  Receipt receipt = claim_one(standard()).receipt;
  const std::string binary("\0\xff\n'\"?", 6);
  for (const std::string& bytes : {std::string("a"), binary, std::string(queue::kMostCheckpointBytes, 'x'), binary}) {
    receipt = stored(receipt, bytes);
    EXPECT_EQ(get("A-1").message.checkpoint, bytes);
  }
  receipt = stored(receipt, "");
  EXPECT_EQ(get("A-1").message.checkpoint, "");
  receipt = stored(receipt, "");  // there was none
  ASSERT_EQ(settle(standard(), receipt, CompletionAction::retry), SettleStatus::applied);
  EXPECT_EQ(claim_one(standard()).message.checkpoint, "");
}

TEST_P(CheckpointContract, OverTheLimitItIsRefusedAndNothingChanges) {
  send("A-1");
  const Receipt receipt = stored(claim_one(standard()).receipt, "half");
  const SettleResult refused = store(receipt, std::string(queue::kMostCheckpointBytes + 1, 'x'));
  EXPECT_EQ(refused.status, SettleStatus::refused);
  EXPECT_THAT(refused.error.message(), HasSubstr("at most 65536 bytes, this one has 65537"));
  EXPECT_EQ(get("A-1").message.checkpoint, "half");
  EXPECT_EQ(get("A-1").version, receipt.version);
  EXPECT_EQ(settle(standard(), receipt, CompletionAction::remove), SettleStatus::applied);
}

TEST_P(CheckpointContract, WhatDoesNotFitBesideTheBodyIsRefusedAndLeavesRoomForTheMessagesLife) {
  send_content("A-1", std::string(380 * 1024, 'x'), "text/plain");
  Receipt receipt = claim_one(standard()).receipt;
  std::size_t fits = 0;
  const SettleResult largest = store(receipt, std::string(queue::kMostCheckpointBytes, 'y'));
  if (!traits().counts_checkpoints) {
    EXPECT_EQ(largest.status, SettleStatus::applied) << largest.error.message();
    return;
  }
  EXPECT_EQ(largest.status, SettleStatus::refused);
  EXPECT_THAT(largest.error.message(), HasSubstr("of which DynamoDB holds 400 KB with the body"));
  EXPECT_EQ(get("A-1").version, receipt.version);
  for (std::size_t step = 32 * 1024; step > 0; step /= 2) {
    const SettleResult result = store(receipt, std::string(fits + step, 'y'));
    if (result.status == SettleStatus::applied) {
      fits += step;
      receipt.version = result.version;
    }
  }
  EXPECT_GT(fits, std::size_t{15} * 1024);
  EXPECT_EQ(get("A-1").message.checkpoint.size(), fits);
  // To the last byte, and still whatever may become of the message is written.
  clock().advance(31s);
  Delivery delivery = claim_one(standard());
  EXPECT_TRUE(delivery.suspect);
  ASSERT_EQ(settle(standard(), delivery.receipt, CompletionAction::retry, {}, failure("no room")),
            SettleStatus::applied);
  delivery = claim_one(standard());
  ASSERT_EQ(settle(standard(), delivery.receipt, CompletionAction::dead_letter), SettleStatus::applied);
  change_one(ChangeAction::redrive);
  delivery = claim_one(standard());
  EXPECT_EQ(delivery.message.checkpoint.size(), fits);
  EXPECT_EQ(settle(standard(), delivery.receipt, CompletionAction::remove), SettleStatus::applied);
}

TEST_P(CheckpointContract, OfSomebodyElsesMessageNothingIsStored) {
  send("A-1");
  const Delivery slow = claim_and_die(standard());
  const Receipt receipt = stored(claim_one(standard()).receipt, "mine");
  EXPECT_EQ(store(slow.receipt, "late").status, SettleStatus::lost);
  EXPECT_EQ(get("A-1").message.checkpoint, "mine");
  ASSERT_EQ(settle(standard(), receipt, CompletionAction::remove), SettleStatus::applied);
  EXPECT_EQ(store(receipt, "gone").status, SettleStatus::lost);
  EXPECT_TRUE(absent("A-1"));
}

TEST_P(CheckpointContract, ExtensionsAndCheckpointsFollowEachOther) {
  send("A-1");
  Receipt receipt = claim_one(standard()).receipt;
  for (int i = 0; i < 3; ++i) {
    clock().advance(20s);
    const auto extended = desk().extend(standard(), std::span(&receipt, 1), 30s, soon()).at(0);
    ASSERT_EQ(extended.status, SettleStatus::applied) << extended.error.message();
    EXPECT_EQ(store(receipt, "with the receipt before").status, SettleStatus::lost);
    receipt = stored(extended.receipt, std::to_string(i));
  }
  EXPECT_EQ(get("A-1").message.checkpoint, "2");
  EXPECT_EQ(settle(standard(), receipt, CompletionAction::remove), SettleStatus::applied);
}

TEST_P(CheckpointContract, GoesWithItsMessage) {
  send("A-1");
  const Receipt receipt = stored(claim_one(standard()).receipt, "half");
  ASSERT_EQ(settle(standard(), receipt, CompletionAction::remove), SettleStatus::applied);
  send("A-1");
  EXPECT_EQ(claim_one(standard()).message.checkpoint, "");
}

TEST_P(CheckpointContract, OperatorsKeepItButForAReset) {
  send("A-1");
  const Receipt receipt = stored(claim_one(standard()).receipt, "half");
  ASSERT_TRUE(edit("A-1", {{.path = {"attributes", "k"}, .json = R"("v")"}}));
  EXPECT_EQ(get("A-1").message.checkpoint, "half");
  EXPECT_EQ(store(receipt, "late").status, SettleStatus::lost);
  for (const ChangeAction action : {ChangeAction::set_visibility, ChangeAction::delay, ChangeAction::move_to_front,
                                    ChangeAction::dead_letter, ChangeAction::redrive}) {
    change_one(action);
    EXPECT_EQ(get("A-1").message.checkpoint, "half") << static_cast<int>(action);
  }
  change_one(ChangeAction::reset);
  EXPECT_EQ(get("A-1").message.checkpoint, "");
  EXPECT_EQ(claim_one(standard()).message.checkpoint, "");
}

TEST_P(CheckpointContract, IsListedAndPutElsewhere) {
  send("A-1");
  stored(claim_one(standard()).receipt, "half");
  auto listed = list_all(standard(), true, true);
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].message.checkpoint, "half");
  EXPECT_EQ(listed[0].native, "") << "the record's fields say all of it";
  const auto put = desk().put(other().queue, listed, queue::PutMode::insert, soon()).at(0);
  ASSERT_EQ(put.status, queue::PutStatus::written) << put.error.message();
  clock().advance(60s);
  EXPECT_EQ(claim_one(other()).message.checkpoint, "half");
}

TEST_P(CheckpointContract, EffectsAreCommittedWithItAndTheMessageStays) {
  send("A-1");
  Receipt receipt = stored(claim_one(standard()).receipt, "1", opens("alice", 7));
  EXPECT_EQ(under_test().balance("alice"), 7);
  Effects more = adds("alice", 3);
  more.messages.push_back({other().queue, {.id = "B-1", .body = "b"}});
  receipt = stored(receipt, "2", more);
  EXPECT_EQ(under_test().balance("alice"), 10);
  EXPECT_EQ(claim_one(other()).message.id, "B-1");
  EXPECT_EQ(get("A-1").message.checkpoint, "2");
  EXPECT_TRUE(claim(standard()).empty());
  ASSERT_EQ(settle_with(receipt, adds("alice", 1)).status, SettleStatus::applied);
  EXPECT_EQ(under_test().balance("alice"), 11);
  EXPECT_TRUE(absent("A-1"));
}

TEST_P(CheckpointContract, WhereAnEffectIsRefusedNothingIsStored) {
  send("A-1");
  Receipt receipt = stored(claim_one(standard()).receipt, "1");
  Effects refused = opens("alice", 7);
  refused.writes.push_back(under_test().add_to_account("nobody", 1));
  refused.writes.back().on_refusal = queue::OnRefusal::reject;
  const SettleResult result = store(receipt, "2", refused);
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_TRUE(result.reject);
  EXPECT_EQ(under_test().balance("alice"), std::nullopt);
  EXPECT_EQ(get("A-1").message.checkpoint, "1");
  receipt = stored(receipt, "3", opens("alice", 8));
  EXPECT_EQ(under_test().balance("alice"), 8);
  EXPECT_EQ(settle(standard(), receipt, CompletionAction::remove), SettleStatus::applied);
}

TEST_P(CheckpointContract, WhoHasLostTheMessageCommitsNothing) {
  send("A-1");
  const Delivery slow = claim_and_die(standard());
  const Delivery next = claim_one(standard());
  EXPECT_EQ(store(slow.receipt, "late", opens("alice", 7)).status, SettleStatus::lost);
  EXPECT_EQ(under_test().balance("alice"), std::nullopt);
  EXPECT_EQ(settle(standard(), next.receipt, CompletionAction::remove), SettleStatus::applied);
}

}  // namespace sluice::test
