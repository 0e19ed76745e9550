// Completions with effects on tables: what they cost, what is done about lost answers, and in which words DynamoDB's
// refusals reach whoever has to mend them.

#include "host/queue/effects.hpp"

#include <array>

#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using queue::Completion;
using queue::CompletionAction;
using queue::Effects;
using queue::ItemAction;
using queue::ItemWrite;
using queue::SettleResult;
using queue::SettleStatus;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DynamoEffects : public StoreOnEmulator {
 protected:
  void SetUp() override {
    StoreOnEmulator::SetUp();
    if (IsSkipped()) {
      return;
    }
    accounts_ = fresh_table_name("accounts");
    dynamo::CreateTableRequest request;
    request.name = accounts_;
    request.attribute_types = {{"id", "S"}};
    request.hash_key = "id";
    const auto made = host().client().create_table(request, soon());
    ASSERT_TRUE(made) << made.error().message;
  }

  /// Adds to a balance, whether it is there or not.
  ItemWrite add(const std::string& name, int amount = 1) const {
    return {.action = ItemAction::update,
            .table = accounts_,
            .item = R"({"id":{"S":")" + name + R"("}})",
            .update = "ADD balance :a",
            .values = R"({":a":{"N":")" + std::to_string(amount) + R"("}})"};
  }
  static Completion with(const queue::Delivery& delivery, std::vector<ItemWrite> writes,
                         const std::string& emitted = {}) {
    auto effects = std::make_shared<Effects>();
    for (ItemWrite& write : writes) {
      effects->writes.push_back({std::move(write), "debit"});
    }
    if (!emitted.empty()) {
      effects->messages.push_back({"orders", {.id = emitted, .body = std::string(300, 'x')}});
    }
    return {.receipt = delivery.receipt, .effects = std::move(effects)};
  }
  /// With a write besides, so that it shows whether the rest is committed.
  Completion emitting(const queue::Delivery& delivery, std::vector<queue::NewMessage> messages) const {
    Completion completion = with(delivery, {add("alice")});
    auto effects = std::make_shared<Effects>(*completion.effects);
    for (queue::NewMessage& message : messages) {
      effects->messages.push_back({"orders", std::move(message)});
    }
    completion.effects = std::move(effects);
    return completion;
  }
  static queue::NewMessage deduplicated(const std::string& id, const std::string& dedup_id) {
    return {.id = id, .body = "x", .dedup_id = dedup_id};
  }
  static queue::NewMessage unique(const std::string& id, const std::string& key) {
    return {.id = id, .body = "x", .unique_key = key};
  }
  bool lies_there(const std::string& id) { return !raw(id).empty(); }
  SettleResult settle_one(const Completion& completion) {
    return desk().settle(standard(), std::span(&completion, 1), soon()).at(0);
  }
  std::string balance(const std::string& name) {
    const auto found = host().client().get_item({.table = accounts_, .key = {{"id", name}}}, soon());
    const auto* number = found ? dynamo::find<dynamo::Number>(found->item, "balance") : nullptr;
    return number == nullptr ? "" : number->text;
  }
  queue::Delivery claim_one(const std::string& prefix = "m") {
    send(1, 300, prefix);
    return claim(1).at(0);
  }
  /// What is said of a completion with this write, which is refused.
  std::string refusal(ItemWrite write) {
    send(1, 20, "r" + std::to_string(refusals_++));
    const SettleResult result = settle_one(with(claim(1).at(0), {std::move(write)}));
    EXPECT_EQ(result.status, SettleStatus::refused) << result.error.message();
    return result.error.message();
  }

  std::string accounts_;
  int refusals_ = 0;
};

TEST_F(DynamoEffects, OneMessageAndOneItemStayWithinTheirBudget) {
  constexpr std::size_t kMessages = 100;
  host().usage().reset();
  send(kMessages, 300);
  std::size_t done = 0;
  while (done < kMessages) {
    const auto deliveries = claim(50);
    ASSERT_FALSE(deliveries.empty());
    std::vector<Completion> completions;
    for (const auto& delivery : deliveries) {
      completions.push_back(with(delivery, {add(delivery.message.id)}));
      auto effects = std::make_shared<Effects>(*completions.back().effects);
      effects->messages.push_back({"receipts", {.id = delivery.message.id, .body = std::string(300, 'x')}});
      completions.back().effects = std::move(effects);
    }
    if (done == 0) {
      make_table(host().client(), "receipts", clock());
    }
    for (const auto& result : desk().settle(standard(), completions, soon())) {
      ASSERT_EQ(result.status, SettleStatus::applied) << result.error.message();
      ++done;
    }
  }
  const double write = host().usage().capacity().write / static_cast<double>(kMessages);
  const auto setup = host().usage().requests("CreateTable") + host().usage().requests("DescribeTable");
  const double requests = static_cast<double>(host().usage().requests() - setup) / static_cast<double>(kMessages);
  std::printf("one message and one item: %.2f WCU, %.2f requests a message\n", write, requests);
  EXPECT_LE(write, 14.0);
  EXPECT_LE(requests, 1.2);
  EXPECT_EQ(host().usage().requests("TransactWriteItems"), kMessages);
}

TEST_F(DynamoEffects, PlainCompletionsOfTheSameBatchStayInTheirBatches) {
  send(50);
  const auto deliveries = claim(50);
  ASSERT_EQ(deliveries.size(), 50U);
  std::vector<Completion> completions;
  for (std::size_t i = 0; i < deliveries.size(); ++i) {
    completions.push_back(i == 7 ? with(deliveries[i], {add("alice")}) : Completion{.receipt = deliveries[i].receipt});
  }
  host().usage().reset();
  for (const auto& result : desk().settle(standard(), completions, soon())) {
    EXPECT_EQ(result.status, SettleStatus::applied);
  }
  EXPECT_EQ(host().usage().requests("TransactWriteItems"), 1U);
  EXPECT_EQ(host().usage().requests("BatchExecuteStatement"), 2U);
}

TEST_F(DynamoEffects, ALostAnswerIsAskedForAgainUnderItsToken) {
  const Completion completion = with(claim_one(), {add("alice")}, "B-1");
  host().faults().break_next(HttpFault::commit_then_500, "TransactItems");
  const auto result = settle_one(completion);
  EXPECT_EQ(result.status, SettleStatus::applied) << result.error.message();
  EXPECT_EQ(balance("alice"), "1");
  EXPECT_EQ(get("B-1").message.id, "B-1");
}

TEST_F(DynamoEffects, WhatStayedUnknownIsAppliedOnceWhenItIsRepeated) {
  const Completion completion = with(claim_one(), {add("alice")}, "B-1");
  host().faults().choose([](const std::string& operation, const std::string&) {
    return operation == "TransactWriteItems" ? HttpFault::commit_then_reset : HttpFault::none;
  });
  const auto unknown = settle_one(completion);
  EXPECT_EQ(unknown.status, SettleStatus::failed);
  EXPECT_EQ(unknown.error.code(), ErrorCode::unknown_outcome) << unknown.error.message();
  host().faults().choose({});
  clock().advance(3s);
  EXPECT_EQ(settle_one(completion).status, SettleStatus::applied) << "the same request, to the letter";
  EXPECT_EQ(balance("alice"), "1");
}

TEST_F(DynamoEffects, ACheckpointWithoutAnAnswerHoldsOnceAndTheMessageGoesOn) {
  for (const bool applies : {true, false}) {
    const std::string name = applies ? "alice" : "bob";
    send(1, 20, name);
    const auto delivery = claim(1).at(0);
    const Completion wanted = with(delivery, {add(name)});
    host().faults().choose([applies](const std::string& operation, const std::string&) {
      return operation != "TransactWriteItems" ? HttpFault::none
             : applies                         ? HttpFault::commit_then_reset
                                               : HttpFault::error_500;
    });
    const auto unknown = desk().source(standard()).checkpoint(delivery.receipt, "half", wanted.effects, soon());
    EXPECT_EQ(unknown.error.code(), ErrorCode::unknown_outcome) << unknown.error.message();
    host().faults().choose({});
    const auto retried = settle_one({.receipt = delivery.receipt, .action = CompletionAction::retry});
    ASSERT_EQ(retried.status, SettleStatus::applied) << retried.error.message();
    clock().advance(1s);
    const auto again = claim(1).at(0);
    EXPECT_EQ(again.message.checkpoint, applies ? "half" : "") << "what the next attempt goes by";
    EXPECT_EQ(balance(name), applies ? "1" : "");
    ASSERT_EQ(settle_one({.receipt = again.receipt}).status, SettleStatus::applied);
  }
}

TEST_F(DynamoEffects, WhatTookNoEffectIsAppliedWhenItIsRepeated) {
  const Completion completion = with(claim_one(), {add("alice")}, "B-1");
  host().faults().choose([](const std::string& operation, const std::string&) {
    return operation == "TransactWriteItems" ? HttpFault::error_500 : HttpFault::none;
  });
  EXPECT_EQ(settle_one(completion).error.code(), ErrorCode::unknown_outcome);
  host().faults().choose({});
  EXPECT_EQ(balance("alice"), "");
  EXPECT_EQ(settle_one(completion).status, SettleStatus::applied);
  EXPECT_EQ(balance("alice"), "1");
}

TEST_F(DynamoEffects, TheTokenTellsOnesOwnRemovalFromAnotherHosts) {
  const Completion completion = with(claim_one(), {add("alice")}, "B-1");
  host().faults().choose([](const std::string& operation, const std::string&) {
    return operation == "TransactWriteItems" ? HttpFault::error_500 : HttpFault::none;
  });
  EXPECT_EQ(settle_one(completion).error.code(), ErrorCode::unknown_outcome);
  host().faults().choose({});
  clock().advance(31s);
  const auto other = make_host("worker-b", 7);
  const auto theirs = claim(other->desk(), 1);
  ASSERT_EQ(theirs.size(), 1U);
  EXPECT_EQ(applied(settle(other->desk(), theirs, CompletionAction::remove)), 1U);
  EXPECT_EQ(settle_one(completion).status, SettleStatus::lost);
  EXPECT_EQ(balance("alice"), "");
}

TEST_F(DynamoEffects, WhenTheTokenIsForgottenTheFenceDecides) {
  const Completion completion = with(claim_one(), {add("alice")}, "B-1");
  host().faults().choose([](const std::string& operation, const std::string&) {
    return operation == "TransactWriteItems" ? HttpFault::commit_then_reset : HttpFault::none;
  });
  EXPECT_EQ(settle_one(completion).error.code(), ErrorCode::unknown_outcome);
  host().faults().choose({});
  clock().advance(11min);
  EXPECT_THAT(settle_one(completion).status, ::testing::AnyOf(SettleStatus::applied, SettleStatus::lost));
  EXPECT_EQ(balance("alice"), "1");
}

TEST_F(DynamoEffects, AnotherProcessFindsTheMessageGoneAndAppliesNothingTwice) {
  const Completion completion = with(claim_one(), {add("alice")}, "B-1");
  host().faults().choose([](const std::string& operation, const std::string&) {
    return operation == "TransactWriteItems" ? HttpFault::commit_then_reset : HttpFault::none;
  });
  EXPECT_EQ(settle_one(completion).error.code(), ErrorCode::unknown_outcome);
  const auto other = make_host("worker-b", 7);
  EXPECT_EQ(other->desk().settle(standard(), std::span(&completion, 1), soon()).at(0).status, SettleStatus::lost);
  EXPECT_EQ(balance("alice"), "1");
}

TEST_F(DynamoEffects, AThrottleIsAFailureThatPasses) {
  const Completion completion = with(claim_one(), {add("alice")});
  host().faults().choose([](const std::string& operation, const std::string&) {
    return operation == "TransactWriteItems" ? HttpFault::throttle_all : HttpFault::none;
  });
  const Completion copy = completion;
  const auto result = desk().settle(standard(), std::span(&copy, 1), Deadline::after(clock(), 100ms)).at(0);
  EXPECT_EQ(result.status, SettleStatus::failed);
  EXPECT_TRUE(result.error.transient()) << result.error.message();
  host().faults().choose({});
  EXPECT_EQ(settle_one(completion).status, SettleStatus::applied);
}

TEST_F(DynamoEffects, ATableThatDoesNotExistIsNamed) {
  ItemWrite write = add("alice");
  write.table = "nobodys-table";
  EXPECT_THAT(refusal(write), AllOf(HasSubstr("write \"debit\" on table nobodys-table was refused"),
                                    HasSubstr("does not exist in this region; create it")));
}

TEST_F(DynamoEffects, ADuplicateIsLeftOutAndTheRestIsCommitted) {
  EXPECT_EQ(settle_one(emitting(claim_one(), {deduplicated("B-1", "order-1")})).status, SettleStatus::applied);
  EXPECT_EQ(get("B-1").message.body, "x");
  host().usage().reset();
  const auto second = settle_one(emitting(claim_one(), {deduplicated("B-2", "order-1"), {.id = "B-3", .body = "y"}}));
  EXPECT_EQ(second.status, SettleStatus::applied) << second.error.message();
  EXPECT_EQ(balance("alice"), "2");
  EXPECT_FALSE(lies_there("B-2")) << "it is a duplicate of B-1";
  EXPECT_TRUE(lies_there("B-3"));
  EXPECT_EQ(host().usage().requests("TransactWriteItems"), 2U) << "the second time without the duplicate";
}

TEST_F(DynamoEffects, AfterTheWindowTheSameIdIsNoDuplicate) {
  EXPECT_EQ(settle_one(emitting(claim_one(), {deduplicated("B-1", "order-1")})).status, SettleStatus::applied);
  clock().advance(6min);
  EXPECT_EQ(settle_one(emitting(claim_one("n"), {deduplicated("B-2", "order-1")})).status, SettleStatus::applied);
  EXPECT_TRUE(lies_there("B-2"));
}

TEST_F(DynamoEffects, AWindowHoldsForSendersToo) {
  EXPECT_EQ(settle_one(emitting(claim_one(), {deduplicated("B-1", "order-1")})).status, SettleStatus::applied);
  const auto sent = desk().send("orders", std::array{deduplicated("B-2", "order-1")}, soon()).at(0);
  EXPECT_EQ(sent.status, queue::SendStatus::deduplicated);
  EXPECT_EQ(sent.id, "B-1");
}

TEST_F(DynamoEffects, TheSecondOfTwoInOneTransactionIsADuplicateOfTheFirst) {
  const auto result =
      settle_one(emitting(claim_one(), {deduplicated("B-1", "order-1"), deduplicated("B-2", "order-1")}));
  EXPECT_EQ(result.status, SettleStatus::applied) << result.error.message();
  EXPECT_TRUE(lies_there("B-1"));
  EXPECT_FALSE(lies_there("B-2"));
}

TEST_F(DynamoEffects, OneTableOfTwoQueuesHasOneMarkForBoth) {
  Completion completion = emitting(claim_one(), {deduplicated("B-1", "order-1")});
  auto effects = std::make_shared<Effects>(*completion.effects);
  effects->messages.push_back({table(), deduplicated("B-2", "order-1")});  // a queue lies in the table of its name
  completion.effects = std::move(effects);
  const auto result = settle_one(completion);
  EXPECT_EQ(result.status, SettleStatus::applied) << result.error.message();
  EXPECT_TRUE(lies_there("B-1"));
  EXPECT_FALSE(lies_there("B-2"));
}

TEST_F(DynamoEffects, AUniqueKeyIsHeldUntilItsMessageIsDone) {
  queue::NewMessage first = unique("B-1", "order-1");
  first.delay = 1h;  // so that it is not what the others claim
  EXPECT_EQ(settle_one(emitting(claim_one(), {first})).status, SettleStatus::applied);
  EXPECT_EQ(settle_one(emitting(claim_one("m1"), {unique("B-2", "order-1")})).status, SettleStatus::applied);
  EXPECT_FALSE(lies_there("B-2")) << "B-1 has the key";
  clock().advance(2h);
  EXPECT_EQ(applied(settle(desk(), claim(10), CompletionAction::remove)), 1U);
  EXPECT_EQ(settle_one(emitting(claim_one("m2"), {unique("B-3", "order-1")})).status, SettleStatus::applied);
  EXPECT_TRUE(lies_there("B-3")) << "B-1 is done";
}

TEST_F(DynamoEffects, AMessageHandsItsOwnUniqueKeyOn) {
  ASSERT_EQ(desk().send("orders", std::array{unique("B-1", "order-1")}, soon()).at(0).status, queue::SendStatus::sent);
  const auto result = settle_one(emitting(claim(1).at(0), {unique("B-2", "order-1")}));
  EXPECT_EQ(result.status, SettleStatus::applied) << result.error.message();
  EXPECT_TRUE(lies_there("B-2"));
}

TEST_F(DynamoEffects, ATakenIdIsRefusedAndItsDeduplicationIdStaysFree) {
  const auto delivery = claim_one();
  send(1, 20, "taken");
  const auto result = settle_one(emitting(delivery, {deduplicated("taken0", "order-1")}));
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_EQ(result.error.code(), ErrorCode::duplicate_id);
  EXPECT_EQ(balance("alice"), "");
  EXPECT_EQ(desk().send("orders", std::array{deduplicated("B-2", "order-1")}, soon()).at(0).status,
            queue::SendStatus::sent);
}

TEST_F(DynamoEffects, ADuplicateWhoseAnswersWereLostIsAppliedOnce) {
  EXPECT_EQ(settle_one(emitting(claim_one(), {deduplicated("B-1", "order-1")})).status, SettleStatus::applied);
  const Completion completion = emitting(claim_one("m1"), {deduplicated("B-2", "order-1")});
  // The first one is cancelled for its duplicate; the one without it takes effect, and nobody hears of it.
  host().faults().choose([](const std::string& operation, const std::string& body) {
    return operation == "TransactWriteItems" && body.find("B-2") == std::string::npos ? HttpFault::commit_then_reset
                                                                                      : HttpFault::none;
  });
  EXPECT_EQ(settle_one(completion).error.code(), ErrorCode::unknown_outcome);
  host().faults().choose({});
  EXPECT_EQ(settle_one(completion).status, SettleStatus::applied) << "the one without the duplicate, to the letter";
  EXPECT_EQ(balance("alice"), "2");
}

TEST_F(DynamoEffects, MarksCountTowardsTheHundredActions) {
  auto completion = emitting(claim_one(), {});
  auto effects = std::make_shared<Effects>();
  for (int i = 0; i < 50; ++i) {
    effects->messages.push_back({"orders", deduplicated("B-" + std::to_string(i), "order-" + std::to_string(i))});
  }
  completion.effects = effects;
  const auto result = settle_one(completion);
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_THAT(result.error.message(), HasSubstr("a transaction carries 100 actions and this is 101"));
}

TEST_F(DynamoEffects, AMessageWithAPriorityIsRefusedWithTheAlternative) {
  const auto result =
      settle_one(emitting(claim_one(), {{.id = "B-1", .body = "x", .priority = queue::Priority::high}}));
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_THAT(result.error.message(),
              AllOf(HasSubstr("message B-1 to queue orders was refused"), HasSubstr("send to a queue for each class")));
}

TEST_F(DynamoEffects, AnAbsentQueueIsNamed) {
  auto completion = with(claim_one(), {});
  auto effects = std::make_shared<Effects>();
  effects->messages.push_back({"nobodys-queue", {.id = "B-1", .body = "x"}});
  completion.effects = effects;
  const auto result = settle_one(completion);
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_THAT(result.error.message(),
              AllOf(HasSubstr("message B-1 to queue nobodys-queue"), HasSubstr("table nobodys-queue does not exist")));
}

TEST_F(DynamoEffects, ATableThatTheRoleMayNotWriteIsNamed) {
  ItemWrite write = add("alice");
  write.table = "locked";
  host().faults().choose([](const std::string& operation, const std::string&) {
    return operation == "TransactWriteItems" ? HttpFault::deny_locked : HttpFault::none;
  });
  EXPECT_THAT(refusal(write), AllOf(HasSubstr("write \"debit\" on table locked was refused"),
                                    HasSubstr("dynamodb:PutItem"), HasSubstr("let the role write table locked")));
}

TEST_F(DynamoEffects, ANameWithAPointIsNoPattern) {
  ItemWrite dotted = add("alice");
  dotted.table = "l.cked";
  ItemWrite locked = add("bob");
  locked.table = "locked";
  host().faults().choose([](const std::string& operation, const std::string&) {
    return operation == "TransactWriteItems" ? HttpFault::deny_locked : HttpFault::none;
  });
  const auto result = settle_one(with(claim_one(), {dotted, locked}));
  EXPECT_THAT(result.error.message(), HasSubstr("let the role write table locked"));
}

TEST_F(DynamoEffects, WhatTheRoleMayNotDoAtAllIsAFailureOfTheJob) {
  const Completion completion = with(claim_one(), {add("alice")});
  host().faults().choose([](const std::string& operation, const std::string&) {
    return operation == "TransactWriteItems" ? HttpFault::deny : HttpFault::none;
  });
  const auto result = settle_one(completion);
  EXPECT_EQ(result.status, SettleStatus::failed);
  EXPECT_EQ(result.error.code(), ErrorCode::denied);
}

TEST_F(DynamoEffects, WhatIsWrongWithAWriteIsSaid) {
  ItemWrite syntax = add("alice");
  syntax.update = "ADD balance";
  EXPECT_THAT(refusal(syntax), HasSubstr("write \"debit\" on table " + accounts_ + " was refused: "));
  ItemWrite json = add("alice");
  json.item = R"({"id":"alice"})";
  EXPECT_THAT(refusal(json),
              AllOf(HasSubstr("its item or key is no DynamoDB JSON"), HasSubstr("; mend what the handler")));
  ItemWrite values = add("alice");
  values.values = "{";
  EXPECT_THAT(refusal(values),
              AllOf(HasSubstr("its values are no DynamoDB JSON"), HasSubstr("; mend what the handler")));
  ItemWrite condition = add("alice");
  condition.condition = "attribute_exists(id)";
  EXPECT_EQ(refusal(condition), "write \"debit\" on table " + accounts_ +
                                    " was refused: its condition does not hold: attribute_exists(id); mend the data or "
                                    "the condition before the attempts run out, or stage the write with "
                                    "otherwise_reject() where another attempt cannot help");
  EXPECT_EQ(balance("alice"), "");
}

TEST_F(DynamoEffects, TablesOfQueuesAreOutOfReach) {
  send(1, 20, "innocent");
  for (const std::string& name : {table(), "arn:aws:dynamodb:eu-west-1:1:table/" + table()}) {
    const ItemWrite write{.action = ItemAction::put, .table = name, .item = R"({"id":{"S":"innocent0"}})"};
    EXPECT_EQ(refusal(write), "write \"debit\" on table " + name +
                                  " was refused: queues lie in that table; keep items of your own in another one, and "
                                  "stage a message to put one into a queue");
  }
  EXPECT_TRUE(lies_there("innocent0"));
}

TEST_F(DynamoEffects, AnItemTwiceIsRefused) {
  const auto result = settle_one(with(claim_one(), {add("alice"), add("alice")}));
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_THAT(result.error.message(), HasSubstr("multiple operations on one item"));
}

TEST_F(DynamoEffects, SqlIsOfTheWrongStore) {
  auto completion = with(claim_one(), {});
  auto effects = std::make_shared<Effects>();
  effects->writes.push_back({queue::SqlWrite{"UPDATE accounts SET balance = 0"}});
  completion.effects = effects;
  const auto result = settle_one(completion);
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_EQ(result.error.message(),
            "write 1 was refused: it is an SQL statement and the message lies in DynamoDB; write items there, or put "
            "the queue into a SQLite store");
}

TEST_F(DynamoEffects, ACheckAndAPutAndADeleteWork) {
  const std::string bob = R"({"id":{"S":"bob"}})";
  ASSERT_EQ(
      settle_one(
          with(claim_one(),
               {{.action = ItemAction::put, .table = accounts_, .item = R"({"id":{"S":"bob"},"balance":{"N":"5"}})"}}))
          .status,
      SettleStatus::applied);
  EXPECT_EQ(balance("bob"), "5");
  ItemWrite check{.action = ItemAction::check,
                  .table = accounts_,
                  .item = bob,
                  .condition = "#b = :five",
                  .names = {{"#b", "balance"}},
                  .values = R"({":five":{"N":"5"}})"};
  ASSERT_EQ(settle_one(with(claim_one(), {check, add("carol")})).status, SettleStatus::applied);
  EXPECT_EQ(balance("carol"), "1");
  ASSERT_EQ(settle_one(with(claim_one(), {{.action = ItemAction::remove, .table = accounts_, .item = bob}})).status,
            SettleStatus::applied);
  EXPECT_EQ(balance("bob"), "");
}

TEST_F(DynamoEffects, ManyRunSideBySide) {
  constexpr std::size_t kMessages = 130;
  send(kMessages);
  std::size_t applied_to = 0;
  while (applied_to < kMessages) {
    const auto deliveries = claim(kMessages);
    ASSERT_FALSE(deliveries.empty());
    std::vector<Completion> completions;
    completions.reserve(deliveries.size());
    for (const auto& delivery : deliveries) {
      completions.push_back(with(delivery, {add("of-" + delivery.message.id)}));
    }
    applied_to += applied(desk().settle(standard(), completions, soon()));
  }
  EXPECT_EQ(applied_to, kMessages);
  EXPECT_EQ(balance("of-m0"), "1");
  EXPECT_EQ(balance("of-m129"), "1");
}

}  // namespace
}  // namespace sluice::test
