#include <memory>

#include "tests/contract/effect_contract.hpp"

// What `settle` promises of idempotency keys: their record is written with the end of the message, or neither is.
namespace sluice::test {

using queue::Completion;
using queue::CompletionAction;
using queue::Effects;
using queue::IdempotencyKeys;
using queue::KeyAnswer;
using queue::KeyState;
using queue::SettleStatus;
using ::testing::HasSubstr;
using ::testing::SizeIs;

namespace {

constexpr const char* kJob = "pay";

/// That the key of a message is done.
Effects done_with(const std::string& key, const std::string& result = "paid", Duration ttl = 1h) {
  Effects effects;
  effects.key = queue::KeyRecord{.job = kJob, .key = key, .result = result, .ttl = ttl};
  return effects;
}

class Keys {
 public:
  Keys(queue::Queues& queues, const std::string& queue) {
    auto opened = queues.open_keys(queue);
    EXPECT_TRUE(opened) << opened.error().message();
    keys_ = std::move(*opened);
  }

  /// A message asks for the key. Zero: the key is its own id.
  KeyAnswer ask(const std::string& key, const std::string& owner, Deadline deadline, Duration hold_for = 60s) {
    const queue::KeyClaim claim{.job = kJob, .key = key, .owner = owner, .hold_for = hold_for, .fence = 1};
    const auto answers = keys_->begin(std::span(&claim, 1), deadline);
    EXPECT_THAT(answers, SizeIs(1));
    return answers.front();
  }
  void release(const std::string& key, const std::string& owner, Deadline deadline) {
    const queue::KeyClaim claim{.job = kJob, .key = key, .owner = owner, .hold_for = 60s, .fence = 1};
    EXPECT_TRUE(keys_->release(std::span(&claim, 1), deadline));
  }
  IdempotencyKeys& all() { return *keys_; }

 private:
  std::unique_ptr<IdempotencyKeys> keys_;
};

}  // namespace

TEST_P(EffectContract, AKeyIsDoneWithItsMessage) {
  send("A-1");
  Keys keys(under_test().queues(), queue_name());
  ASSERT_EQ(keys.ask("order-1", "A-1", soon()).state, KeyState::ours);
  ASSERT_EQ(settle_with(claim_one(standard()).receipt, done_with("order-1")).status, SettleStatus::applied);
  EXPECT_TRUE(absent("A-1"));
  const KeyAnswer duplicate = keys.ask("order-1", "A-2", soon());
  EXPECT_EQ(duplicate.state, KeyState::done);
  EXPECT_EQ(duplicate.owner, "A-1");
  EXPECT_EQ(duplicate.result, "paid");
  keys.release("order-1", "A-1", soon());
  EXPECT_EQ(keys.ask("order-1", "A-2", soon()).state, KeyState::done) << "what is done is not released";
  const auto stored = keys.all().get(kJob, "order-1", soon());
  ASSERT_TRUE(stored && *stored);
  EXPECT_TRUE((*stored)->done);
}

TEST_P(EffectContract, AKeyIsForgottenWhenItsTimeHasPassed) {
  send("A-1");
  Keys keys(under_test().queues(), queue_name());
  ASSERT_EQ(keys.ask("order-1", "A-1", soon()).state, KeyState::ours);
  ASSERT_EQ(settle_with(claim_one(standard()).receipt, done_with("order-1", "paid", 600s)).status,
            SettleStatus::applied);
  clock().advance(599s);
  EXPECT_EQ(keys.ask("order-1", "A-2", soon()).state, KeyState::done);
  clock().advance(2s);
  EXPECT_EQ(keys.ask("order-1", "A-2", soon()).state, KeyState::ours);
}

TEST_P(EffectContract, AMessagesOwnIdIsAKeyWithoutAMark) {
  send("A-1");
  Keys keys(under_test().queues(), queue_name());
  ASSERT_EQ(keys.ask("A-1", "", soon(), {}).state, KeyState::ours);
  Effects effects = done_with("A-1");
  effects.key->own_id = true;
  effects.key->key.clear();
  ASSERT_EQ(settle_with(claim_one(standard()).receipt, effects).status, SettleStatus::applied);
  send("A-1");
  EXPECT_EQ(keys.ask("A-1", "", soon(), {}).state, KeyState::done) << "it was sent again under its id";
}

TEST_P(EffectContract, AClaimTellsWhichOwnIdsAreDoneOrNothingOfAny) {
  const auto claim = [this](const std::string& job) {
    const auto claimed = claim_as(standard(), {.max = 10, .visibility = 1s, .own_ids_of = job});
    clock().advance(2s);  // for the next one
    return claimed.deliveries;
  };
  send("A-1");
  Effects effects = done_with("", "paid", 600s);
  effects.key->own_id = true;
  ASSERT_EQ(settle_with(claim_one(standard()).receipt, effects).status, SettleStatus::applied);
  send("A-1");
  send("A-2");
  std::size_t seen = 0;
  for (std::size_t round = 0; round < 4 && seen < 2; ++round) {
    // Suspects come one by one.
    for (const auto& delivery : claim(kJob)) {
      ++seen;
      if (!delivery.own_id.asked) {
        EXPECT_EQ(delivery.own_id.done, nullptr);
        continue;
      }
      ASSERT_EQ(delivery.own_id.done != nullptr, delivery.message.id == "A-1");
      if (delivery.own_id.done) {
        EXPECT_EQ(delivery.own_id.done->state, KeyState::done);
        EXPECT_EQ(delivery.own_id.done->owner, "A-1");
        EXPECT_EQ(delivery.own_id.done->result, "paid");
      }
    }
  }
  EXPECT_EQ(seen, 2U);
  for (const auto& delivery : claim("another job")) {
    EXPECT_EQ(delivery.own_id.done, nullptr);
  }
  for (const auto& delivery : claim("")) {
    EXPECT_FALSE(delivery.own_id.asked);
  }
  clock().advance(600s);
  for (const auto& delivery : claim(kJob)) {
    EXPECT_EQ(delivery.own_id.done, nullptr) << "its time has passed";
  }
}

TEST_P(EffectContract, ARefusedWriteLeavesTheKeyInProgress) {
  send("A-1");
  Keys keys(under_test().queues(), queue_name());
  ASSERT_EQ(keys.ask("order-1", "A-1", soon()).state, KeyState::ours);
  const auto delivery = claim_one(standard());
  Effects effects = done_with("order-1");
  effects.writes.push_back(under_test().add_to_account("nobody", 1));
  EXPECT_EQ(settle_with(delivery.receipt, effects).status, SettleStatus::refused);
  EXPECT_FALSE(absent("A-1"));
  EXPECT_EQ(keys.ask("order-1", "A-2", soon()).state, KeyState::running);
  effects.writes.clear();
  EXPECT_EQ(settle_with(delivery.receipt, effects).status, SettleStatus::applied);
  EXPECT_EQ(keys.ask("order-1", "A-2", soon()).state, KeyState::done);
}

TEST_P(EffectContract, WhoHasLostHisMessageRecordsNoKey) {
  send("A-1");
  Keys keys(under_test().queues(), queue_name());
  const auto lost = claim_one(standard(), 1s);
  ASSERT_EQ(keys.ask("order-1", "A-1", soon()).state, KeyState::ours);
  clock().advance(2s);
  const auto held = claim_one(standard());
  EXPECT_EQ(settle_with(lost.receipt, done_with("order-1", "late")).status, SettleStatus::lost);
  EXPECT_EQ(keys.ask("order-1", "A-2", soon()).state, KeyState::running);
  ASSERT_EQ(settle_with(held.receipt, done_with("order-1", "in time")).status, SettleStatus::applied);
  EXPECT_EQ(keys.ask("order-1", "A-2", soon()).result, "in time");
}

TEST_P(EffectContract, WhoHasLostHisKeyCommitsNothing) {
  send("A-1");
  const auto delivery = claim_one(standard(), 600s);
  Keys keys(under_test().queues(), queue_name());
  ASSERT_EQ(keys.ask("order-1", "A-1", soon(), 10s).state, KeyState::ours);
  clock().advance(11s);
  ASSERT_EQ(keys.ask("order-1", "A-2", soon()).state, KeyState::ours) << "his mark was void";
  Effects effects = opens("alice", 7);
  effects.key = done_with("order-1").key;
  const auto result = settle_with(delivery.receipt, effects);
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_THAT(result.error.message(), HasSubstr("idempotency key is held by another message"));
  EXPECT_FALSE(result.reject);
  EXPECT_EQ(under_test().balance("alice"), std::nullopt);
  EXPECT_FALSE(absent("A-1"));
  EXPECT_EQ(settle_with(delivery.receipt, done_with("order-1")).status, SettleStatus::refused)
      << "the same where there is nothing but the key";
  EXPECT_EQ(keys.ask("order-1", "A-3", soon()).state, KeyState::running);
}

// Each step takes away what decided in the step before.
TEST_P(EffectContract, OfSeveralThatRefuseTheFirstInTheOrderOfATransactionCounts) {
  send("A-1");
  send("B-1");
  const auto lost = claim_one(standard(), 1s);
  clock().advance(2s);
  const auto held = claim_one(standard(), 600s);
  ASSERT_EQ(held.message.id, lost.message.id);
  Keys keys(under_test().queues(), queue_name());
  ASSERT_EQ(keys.ask("order-1", "B-1", soon()).state, KeyState::ours);
  Effects effects = done_with("order-1");
  effects.writes.push_back(under_test().add_to_account("nobody", 1));
  effects.messages.push_back({queue_name(), {.id = "B-1", .body = "taken"}});
  Effects impossible = effects;
  impossible.messages.push_back({queue_name(), {.id = "C-1", .body = "x", .dedup_id = std::string(2000, 'k')}});

  EXPECT_EQ(settle_with(lost.receipt, effects).status, SettleStatus::lost);
  auto result = settle_with(lost.receipt, impossible);
  EXPECT_EQ(result.status, SettleStatus::refused) << "that needs no look at anything";
  EXPECT_THAT(result.error.message(), HasSubstr("deduplication id"));
  result = settle_with(held.receipt, effects);
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_THAT(result.error.message(), HasSubstr("idempotency key"));
  effects.key.reset();
  EXPECT_THAT(settle_with(held.receipt, effects).error.message(), HasSubstr("write 1"));
  effects.writes.clear();
  EXPECT_THAT(settle_with(held.receipt, effects).error.message(), HasSubstr("message B-1 to queue"));
  effects.messages.clear();
  EXPECT_EQ(settle_with(held.receipt, effects).status, SettleStatus::applied);
}

TEST_P(EffectContract, OfTwoMessagesOfABatchOneHasTheKey) {
  send_many(2);
  const auto deliveries = claim_all(standard());
  ASSERT_THAT(deliveries, SizeIs(2));
  for (const bool with_effects : {false, true}) {
    SCOPED_TRACE(with_effects);
    std::vector<Completion> completions;
    for (const auto& delivery : deliveries) {
      Effects effects = with_effects ? opens("of " + delivery.message.id, 1) : Effects();
      effects.key = done_with("order-1").key;
      completions.push_back({.receipt = delivery.receipt, .effects = std::make_shared<const Effects>(effects)});
    }
    const auto results = settle_all(completions);
    ASSERT_THAT(results, SizeIs(2));
    if (with_effects) {
      // The key is done since the round before: the message that is left has no say any more.
      EXPECT_THAT((std::vector{results[0].status, results[1].status}),
                  ::testing::UnorderedElementsAre(SettleStatus::refused, SettleStatus::lost));
    } else {
      EXPECT_THAT((std::vector{results[0].status, results[1].status}),
                  ::testing::UnorderedElementsAre(SettleStatus::applied, SettleStatus::refused));
    }
  }
  EXPECT_EQ(stats(standard()).total(), 1U);
}

TEST_P(EffectContract, AKeyIsDoneAgainWithItsOwnMessageAlone) {
  send("A-1");
  Keys keys(under_test().queues(), queue_name());
  const auto delivery = claim_one(standard());
  ASSERT_EQ(settle_with(delivery.receipt, done_with("order-1")).status, SettleStatus::applied);
  send("A-2");
  const auto second = claim_one(standard());
  EXPECT_EQ(settle_with(second.receipt, done_with("order-1", "twice")).status, SettleStatus::refused);
  EXPECT_EQ(keys.ask("order-1", "A-3", soon()).result, "paid");
  EXPECT_EQ(settle(standard(), second.receipt, CompletionAction::remove), SettleStatus::applied)
      << "it may go without it";
}

TEST_P(EffectContract, AStagedMessageIsDeduplicated) {
  send_many(2);
  const auto deliveries = claim_all(standard());
  ASSERT_THAT(deliveries, SizeIs(2));
  std::vector<queue::SettleResult> results;
  for (const auto& delivery : deliveries) {
    Effects effects;
    effects.messages.push_back({other().queue, {.id = "B-" + delivery.message.id, .dedup_id = "once"}});
    results.push_back(settle_with(delivery.receipt, effects));
  }
  EXPECT_EQ(results[0].status, SettleStatus::applied) << results[0].error.message();
  EXPECT_EQ(results[1].status, SettleStatus::applied) << results[1].error.message();
  EXPECT_THAT(claim_all(other()), SizeIs(1));
}

}  // namespace sluice::test
