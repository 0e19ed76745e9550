#include <gmock/gmock.h>

#include "tests/plugins/live_host.hpp"

namespace sluice::shipped {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char* const kOrder = R"({"from": "ann", "to": "bob", "amount": 10})";

TEST(TransferPlugin, StagesBothSidesAndAReceiptInSqlite) {
  HandlerTest transfer(handler_of("transfer"), {{"accounts", "ledger"}, {"receipts", "paid"}});
  const Result result = transfer.handle({.body = kOrder, .id = "T-1"});
  EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
  EXPECT_TRUE(result.committed);
  EXPECT_THAT(result.effects.write("debit").statement, HasSubstr("UPDATE ledger SET balance = balance - ?1"));
  EXPECT_THAT(result.effects.write("debit").parameters, ElementsAre("10", "'ann'"));
  EXPECT_THAT(result.effects.write("credit").parameters, ElementsAre("10", "'bob'"));
  EXPECT_EQ(result.effects.message_to("paid").attributes.at("transfer"), "T-1");
  EXPECT_EQ(result.effects.result, "moved 10");
}

TEST(TransferPlugin, StagesTheSameInDynamoDb) {
  HandlerTest transfer(handler_of("transfer"), {}, "test", Store::dynamodb);
  const Result result = transfer.handle({.body = kOrder});
  EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
  EXPECT_EQ(result.effects.write("debit").condition, "balance >= :amount");
  EXPECT_EQ(result.effects.write("credit").item, R"({"id":{"S":"bob"}})");
  EXPECT_EQ(result.effects.message_to("receipts").body, kOrder);
}

TEST(TransferPlugin, CommitsNothingWithoutCover) {
  HandlerTest transfer(handler_of("transfer"));
  transfer.refuse("debit");
  const Result result = transfer.handle({.body = kOrder});
  EXPECT_EQ(result.status, SLUICE_REJECT);
  EXPECT_FALSE(result.committed);
  EXPECT_THAT(result.reason, HasSubstr("write \"debit\" was refused"));
}

TEST(TransferPlugin, RefusesOrdersThatAreNone) {
  HandlerTest transfer(handler_of("transfer"));
  EXPECT_EQ(transfer.handle({.body = R"({"from": "ann", "to": "ann", "amount": 10})"}).status, SLUICE_REJECT);
  EXPECT_EQ(transfer.handle({.body = R"({"from": "ann", "to": "bob", "amount": 0})"}).status, SLUICE_REJECT);
  for (const char* const body : {"", "{", "[]", R"({"from": "ann"})", R"({"from": 1, "to": 2, "amount": "x"})"}) {
    const Result result = transfer.handle({.body = body});
    EXPECT_EQ(result.status, SLUICE_FAULT) << body;
    EXPECT_TRUE(result.effects.empty()) << body;
  }
}

TEST(TransferPlugin, NeedsAStoreWithTransactions) {
  const HandlerTest transfer(handler_of("transfer"), {}, "test", Store::none);
  EXPECT_FALSE(transfer.created());
  EXPECT_THAT(transfer.errors(), ElementsAre(HasSubstr("no transactions")));
}

}  // namespace
}  // namespace sluice::shipped
