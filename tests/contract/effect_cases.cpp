#include <algorithm>
#include <atomic>
#include <memory>

#include "tests/contract/effect_contract.hpp"

// What `settle` promises of effects: they are committed together with the completion, or not at all.
namespace sluice::test {

using queue::Completion;
using queue::CompletionAction;
using queue::Effects;
using queue::EmittedMessage;
using queue::NewMessage;
using queue::OnRefusal;
using queue::SettleResult;
using queue::SettleStatus;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace {

EmittedMessage to(const std::string& queue, const std::string& id, Duration delay = {}) {
  NewMessage message;
  message.id = id;
  message.body = "body of " + id;
  message.delay = delay;
  return {queue, std::move(message)};
}

Completion with(const queue::Delivery& delivery, Effects effects) {
  return {.receipt = delivery.receipt, .effects = std::make_shared<const Effects>(std::move(effects))};
}

}  // namespace

TEST_P(EffectContract, AreRefusedByStoresWithoutTransactions) {
  send("A-1");
  const auto result = settle_with(claim_one(standard()).receipt, emits({to(queue_name(), "B-1")}));
  EXPECT_EQ(result.status, transactions() ? SettleStatus::applied : SettleStatus::refused) << result.error.message();
  EXPECT_EQ(absent("A-1"), transactions());
  EXPECT_EQ(absent("B-1"), !transactions());
}

TEST_P(EffectContract, AreCommittedWithTheCompletion) {
  send("A-1");
  Effects effects = opens("alice", 7);
  EmittedMessage whole = to(other().queue, "B-1");
  whole.message.content_type = "application/json";
  whole.message.body = R"({"n":1})";
  whole.message.attributes = {{"colour", "red"}};
  effects.messages = {whole, to(other().queue, "B-2"), to(queue_name(), "B-3")};
  const auto result = settle_with(claim_one(standard()).receipt, effects);
  ASSERT_EQ(result.status, SettleStatus::applied) << result.error.message();
  EXPECT_TRUE(absent("A-1"));
  EXPECT_EQ(under_test().balance("alice"), 7);
  const auto sent = claim(other());
  ASSERT_EQ(sent.size(), 2U);
  const auto first = std::find_if(sent.begin(), sent.end(), [](const auto& one) { return one.message.id == "B-1"; });
  ASSERT_NE(first, sent.end());
  EXPECT_EQ(first->message.body, R"({"n":1})");
  EXPECT_EQ(first->message.content_type, "application/json");
  EXPECT_EQ(first->message.attributes.at("colour"), "red");
  EXPECT_EQ(first->message.attempt, 1U);
  EXPECT_EQ(claim_one(standard()).message.id, "B-3");
}

TEST_P(EffectContract, DelayedMessagesWait) {
  send("A-1");
  ASSERT_EQ(settle_with(claim_one(standard()).receipt, emits({to(queue_name(), "B-1", 10s)})).status,
            SettleStatus::applied);
  clock().advance(9s);
  EXPECT_THAT(claim(standard()), IsEmpty());
  clock().advance(1s + 1ms);
  EXPECT_EQ(claim_one(standard()).message.id, "B-1");
}

TEST_P(EffectContract, MessagesOfOneCompletionKeepTheirOrder) {
  send("A-1");
  queue::EmittedMessages messages;
  std::vector<std::string> ids;
  for (int i = 0; i < 9; ++i) {
    ids.push_back("B-" + std::to_string(i));
    messages.push_back(to(queue_name(), ids.back()));
  }
  ASSERT_EQ(settle_with(claim_one(standard()).receipt, emits(messages)).status, SettleStatus::applied);
  auto claimed = ids_of(claim(standard()));
  if (!traits().stable_ties) {
    std::sort(claimed.begin(), claimed.end());
  }
  EXPECT_EQ(claimed, ids);
}

TEST_P(EffectContract, AMessagesPriorityIsKeptOrRefused) {
  send("A-1");
  Effects effects = emits({to(queue_name(), "B-1")});
  effects.messages.front().message.priority = queue::Priority::high;
  const auto result = settle_with(claim_one(standard()).receipt, effects);
  if (desk().source(standard()).traits().priorities) {
    ASSERT_EQ(result.status, SettleStatus::applied) << result.error.message();
    EXPECT_EQ(claim_one(standard()).message.priority, queue::Priority::high);
  } else {
    EXPECT_EQ(result.status, SettleStatus::refused);
    EXPECT_THAT(result.error.message(), HasSubstr("has no priorities"));
    EXPECT_FALSE(absent("A-1"));
  }
}

TEST_P(EffectContract, MessagesRingForThoseWhoWait) {
  send("A-1");
  const auto delivery = claim_one(standard());
  // One that has found nothing hears of the next message.
  std::atomic<int> rung{0};
  auto waiting = under_test().queues().open_source(other());
  ASSERT_TRUE(waiting);
  (*waiting)->start({.on_ready = [&rung] { ++rung; }, .lost = {}});
  ASSERT_TRUE((*waiting)->claim({.max = 1, .visibility = 30s}, soon()));
  ASSERT_EQ(settle_with(delivery.receipt, emits({to(other().queue, "B-1")})).status, SettleStatus::applied);
  (*waiting)->stop();
  EXPECT_GE(rung, 1);
}

TEST_P(EffectContract, OfALostReceiptAreNotCommitted) {
  send("A-1");
  const auto lost = claim_one(standard(), 1s);
  clock().advance(2s);
  const auto held = claim_one(standard());
  Effects effects = opens("alice", 7);
  effects.messages = {to(queue_name(), "B-1")};
  EXPECT_EQ(settle_with(lost.receipt, effects).status, SettleStatus::lost);
  EXPECT_EQ(under_test().balance("alice"), std::nullopt);
  EXPECT_TRUE(absent("B-1"));
  EXPECT_EQ(settle_with(held.receipt, effects).status, SettleStatus::applied);
  EXPECT_EQ(under_test().balance("alice"), 7);
  EXPECT_FALSE(absent("B-1"));
}

TEST_P(EffectContract, ARefusedWriteCommitsNothingAndTheDeliveryStaysAsItWas) {
  send("A-1");
  const auto delivery = claim_one(standard());
  Effects effects = opens("alice", 7);
  effects.messages = {to(queue_name(), "B-1")};
  effects.writes.push_back(under_test().add_to_account("nobody", 1));
  effects.writes.back().label = "credit";
  const auto result = settle_with(delivery.receipt, effects);
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_THAT(result.error.message(), HasSubstr("write \"credit\""));
  EXPECT_THAT(result.error.message(), HasSubstr("accounts"));
  EXPECT_FALSE(result.reject);
  EXPECT_EQ(under_test().balance("alice"), std::nullopt);
  EXPECT_TRUE(absent("B-1"));
  // Nobody else is given it meanwhile, and its receipt is as good as before.
  EXPECT_THAT(claim(standard()), IsEmpty());
  effects.writes.pop_back();
  EXPECT_EQ(settle_with(delivery.receipt, effects).status, SettleStatus::applied);
  EXPECT_EQ(under_test().balance("alice"), 7);
}

TEST_P(EffectContract, ARefusalSaysThatItsMessageIsToBeRejected) {
  send("A-1");
  const auto delivery = claim_one(standard());
  EXPECT_EQ(settle_with(delivery.receipt, opens("alice", 7)).status, SettleStatus::applied);
  send("A-2");
  const auto second = claim_one(standard());
  const auto result = settle_with(second.receipt, opens("alice", 7, OnRefusal::reject));
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_TRUE(result.reject);
  EXPECT_THAT(result.error.message(), HasSubstr("write 1"));
  EXPECT_EQ(settle(standard(), second.receipt, CompletionAction::dead_letter, {}, failure("refused")),
            SettleStatus::applied);
}

TEST_P(EffectContract, AMessageWhoseIdIsTakenIsRefused) {
  send("A-1");
  const auto delivery = claim_one(standard());
  send("B-1");
  Effects effects = opens("alice", 7);
  effects.messages = {to(queue_name(), "B-0"), to(queue_name(), "B-1")};
  const auto result = settle_with(delivery.receipt, effects);
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_THAT(result.error.message(), HasSubstr("B-1"));
  EXPECT_THAT(result.error.message(), HasSubstr("there already"));
  EXPECT_TRUE(absent("B-0"));
  EXPECT_EQ(under_test().balance("alice"), std::nullopt);
  EXPECT_FALSE(absent("A-1"));
}

TEST_P(EffectContract, RefusalsTouchNoOtherOfTheBatch) {
  constexpr std::size_t kCount = 40;
  send("setup");
  ASSERT_EQ(settle_with(claim_one(standard()).receipt, opens("alice", 0)).status, SettleStatus::applied);
  send_many(kCount);
  const auto deliveries = claim_all(standard());
  ASSERT_EQ(deliveries.size(), kCount);
  std::vector<Completion> completions;
  for (std::size_t i = 0; i < kCount; ++i) {
    Effects effects = adds("alice", 1);
    effects.messages = {to(other().queue, "B-" + std::to_string(i))};
    if (i % 7 == 3) {
      effects.writes.push_back(under_test().add_to_account("nobody", 1));
    }
    completions.push_back(i % 5 == 4 ? Completion{.receipt = deliveries[i].receipt} : with(deliveries[i], effects));
  }
  const auto results = settle_all(completions);
  ASSERT_EQ(results.size(), kCount);
  std::size_t applied = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const bool plain = i % 5 == 4;
    const bool refused = !plain && i % 7 == 3;
    EXPECT_EQ(results[i].status, refused ? SettleStatus::refused : SettleStatus::applied)
        << i << " " << results[i].error.message();
    EXPECT_EQ(absent(deliveries[i].message.id), !refused) << i;
    applied += plain || refused ? 0 : 1;
  }
  EXPECT_EQ(under_test().balance("alice"), static_cast<std::int64_t>(applied));
  EXPECT_EQ(claim_all(other()).size(), applied);
  EXPECT_EQ(stats(standard()).total(), kCount - static_cast<std::size_t>(std::count_if(
                                                    results.begin(), results.end(), [](const SettleResult& result) {
                                                      return result.status == SettleStatus::applied;
                                                    })));
}

TEST_P(EffectContract, OneIdSentByTwoOfABatchIsTheFirstOnes) {
  send_many(2);
  const auto deliveries = claim_all(standard());
  ASSERT_EQ(deliveries.size(), 2U);
  const auto results = settle_all(
      {with(deliveries[0], emits({to(other().queue, "B-1")})), with(deliveries[1], emits({to(other().queue, "B-1")}))});
  const auto applied = std::count_if(results.begin(), results.end(),
                                     [](const SettleResult& one) { return one.status == SettleStatus::applied; });
  EXPECT_EQ(applied, 1) << results[0].error.message() << results[1].error.message();
  EXPECT_EQ(claim_all(other()).size(), 1U);
  EXPECT_EQ(stats(standard()).total(), 1U);
}

TEST_P(EffectContract, ARepeatAppliesNothingTwice) {
  send("A-1");
  const auto delivery = claim_one(standard());
  send("setup");
  ASSERT_EQ(settle_with(claim_one(standard()).receipt, opens("alice", 0)).status, SettleStatus::applied);
  Effects effects = adds("alice", 1);
  effects.messages = {to(other().queue, "B-1")};
  ASSERT_EQ(settle_with(delivery.receipt, effects).status, SettleStatus::applied);
  EXPECT_THAT(settle_with(delivery.receipt, effects).status, AnyOf(SettleStatus::applied, SettleStatus::lost));
  EXPECT_EQ(under_test().balance("alice"), 1);
  EXPECT_EQ(claim_all(other()).size(), 1U);
}

TEST_P(EffectContract, MoreActionsThanATransactionCarriesAreRefused) {
  send("A-1");
  const auto delivery = claim_one(standard());
  queue::EmittedMessages messages;
  for (std::size_t i = 0; i < queue::kMostEffects; ++i) {
    messages.push_back(to(queue_name(), "B-" + std::to_string(1000 + i)));
  }
  const auto result = settle_with(delivery.receipt, emits(messages));
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_THAT(result.error.message(), HasSubstr("100 actions and this is 101"));
  EXPECT_TRUE(absent("B-1000"));
  messages.resize(traits().most_sent + 1);
  EXPECT_EQ(settle_with(delivery.receipt, emits(messages)).status, SettleStatus::refused);
  messages.pop_back();
  EXPECT_EQ(settle_with(delivery.receipt, emits(messages)).status, SettleStatus::applied);
  EXPECT_EQ(stats(standard()).total(), messages.size());
}

TEST_P(EffectContract, AsManyMessagesAsPromisedFitWhereNobodyChoseAnId) {
  queue::EmittedMessages messages;
  for (std::size_t i = 0; i < queue::kMostEffects - 1; ++i) {
    messages.push_back(to(queue_name(), "B-" + std::to_string(1000 + i)));
    messages.back().made_id = true;
  }
  const queue::NewMessage plain{.body = "sent without an id"};
  const auto sent = desk().send(queue_name(), std::span(&plain, 1), soon()).front();
  ASSERT_EQ(sent.status, queue::SendStatus::sent);
  clock().advance(1ms);
  const auto result = settle_with(claim_one(standard()).receipt, emits(messages));
  EXPECT_EQ(result.status, SettleStatus::applied) << result.error.message();
  EXPECT_TRUE(absent(sent.id));
  const auto claimed = claim_all(standard());
  ASSERT_EQ(claimed.size(), messages.size());
  EXPECT_FALSE(absent(claimed.front().message.id)) << "it is found by the id that it came with";
}

TEST_P(EffectContract, MoreBytesThanATransactionCarriesAreRefused) {
  send("A-1");
  const auto delivery = claim_one(standard());
  queue::EmittedMessages messages;
  for (int i = 0; i < 12; ++i) {
    messages.push_back(to(queue_name(), "B-" + std::to_string(i)));
    messages.back().message.body.assign(std::size_t{380} * 1024, 'x');
  }
  const auto result = settle_with(delivery.receipt, emits(messages));
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_THAT(result.error.message(), HasSubstr("4194304 bytes"));
  EXPECT_EQ(stats(standard()).total(), 1U);
}

TEST_P(EffectContract, AMessageTwiceIsRefused) {
  send("A-1");
  const auto result =
      settle_with(claim_one(standard()).receipt, emits({to(queue_name(), "B-1"), to(queue_name(), "B-1")}));
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_THAT(result.error.message(), HasSubstr("twice"));
  EXPECT_TRUE(absent("B-1"));
}

}  // namespace sluice::test
