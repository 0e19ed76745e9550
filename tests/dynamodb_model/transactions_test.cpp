#include <gtest/gtest.h>

#include "tests/dynamodb_model/model_rig.hpp"

namespace sluice::test::model {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

const std::string kPutA = R"--({"Put":{"TableName":"jobs","Item":{"id":{"S":"a"}},
  "ConditionExpression":"attribute_not_exists(id)"}})--";
const std::string kPutB = R"({"Put":{"TableName":"jobs","Item":{"id":{"S":"b"}}}})";

std::string items(const std::string& parts, const std::string& token = "") {
  return R"({"ReturnConsumedCapacity":"TOTAL","TransactItems":[)" + parts + "]" +
         (token.empty() ? "" : R"(,"ClientRequestToken":")" + token + "\"") + "}";
}

TEST(ModelTransactions, AreAllOrNothing) {
  ModelRig rig;
  EXPECT_EQ(rig.ask("TransactWriteItems", items(kPutA + "," + kPutB)).status, 200);
  rig.ask("DeleteItem", R"({"TableName":"jobs","Key":{"id":{"S":"b"}}})");
  const Reply reply = rig.ask("TransactWriteItems", items(kPutA + "," + kPutB));
  EXPECT_EQ(reply.error(), "TransactionCanceledException");
  EXPECT_EQ(reply.body.at("CancellationReasons").as_array()[0].at("Code").as_string(), "ConditionalCheckFailed");
  EXPECT_EQ(reply.body.at("CancellationReasons").as_array()[1].at("Code").as_string(), "None");
  EXPECT_EQ(rig.model.items("jobs").size(), 1u);
}

TEST(ModelTransactions, CostTwiceTheTableAndOnceTheIndex) {
  ModelRig rig;
  const Reply reply = rig.ask("TransactWriteItems", items(R"({"Put":{"TableName":"jobs",
    "Item":{"id":{"S":"a"},"kind":{"S":"k"},"at":{"S":"1"}}}})"));
  EXPECT_EQ(number_at(reply.body, {"ConsumedCapacity", "CapacityUnits"}), 3);
}

TEST(ModelTransactions, ATokenMakesThemIdempotentForTenMinutes) {
  ModelRig rig;
  const std::string once = items(kPutA, "token");
  EXPECT_EQ(rig.ask("TransactWriteItems", once).status, 200);
  EXPECT_EQ(rig.ask("TransactWriteItems", once).status, 200);
  EXPECT_EQ(rig.ask("TransactWriteItems", items(kPutB, "token")).error(), "IdempotentParameterMismatchException");
  rig.clock.advance(minutes(10));
  EXPECT_EQ(rig.ask("TransactWriteItems", once).error(), "TransactionCanceledException");
}

TEST(ModelTransactions, OthersConflictWhileOneIsAtWork) {
  ModelSettings settings;
  settings.transaction_span = milliseconds(20);
  ModelRig rig(settings);
  EXPECT_EQ(rig.ask("TransactWriteItems", items(kPutA)).status, 200);
  const std::string put = R"({"TableName":"jobs","Item":{"id":{"S":"a"}}})";
  EXPECT_EQ(rig.ask("PutItem", put).error(), "TransactionConflictException");
  const Reply other = rig.ask("TransactWriteItems", items(kPutA));
  EXPECT_EQ(other.body.at("CancellationReasons").as_array()[0].at("Code").as_string(), "TransactionConflict");
  rig.clock.advance(milliseconds(20));
  EXPECT_EQ(rig.ask("PutItem", put).status, 200);
}

TEST(ModelTransactions, AnItemMayBeInOneOnlyOnce) {
  ModelRig rig;
  EXPECT_EQ(rig.ask("TransactWriteItems", items(kPutB + "," + kPutB)).error(), "ValidationException");
}

TEST(ModelTransactions, HoldFourMegabytesOfItems) {
  ModelRig rig;
  const auto put = [](int number) {
    return R"({"Put":{"TableName":"jobs","Item":{"id":{"S":")" + std::to_string(number) + R"("},"b":{"S":")" +
           std::string(400'000, 'x') + R"("}}}})";
  };
  std::string parts = put(0);
  for (int number = 1; number < 10; ++number) {
    parts += "," + put(number);
  }
  EXPECT_EQ(rig.ask("TransactWriteItems", items(parts)).status, 200);
  EXPECT_EQ(rig.ask("TransactWriteItems", items(parts + "," + put(10))).error(), "ValidationException");
}

TEST(ModelTransactions, GetSeesAllItemsAtOnce) {
  ModelRig rig;
  rig.ask("TransactWriteItems", items(kPutA + "," + kPutB));
  const Reply reply = rig.ask(
      "TransactGetItems",
      items(
          R"({"Get":{"TableName":"jobs","Key":{"id":{"S":"a"}}}},{"Get":{"TableName":"jobs","Key":{"id":{"S":"x"}}}})"));
  EXPECT_EQ(reply.body.at("Responses").as_array()[0].as_object().count("Item"), 1u);
  EXPECT_EQ(reply.body.at("Responses").as_array()[1].as_object().count("Item"), 0u);
}

}  // namespace
}  // namespace sluice::test::model
