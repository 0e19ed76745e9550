#include "dynamo/codec/requests.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace sluice::dynamo {
namespace {

// Order of members does not matter to DynamoDB; boost::json compares objects without it.
void expect_json(const std::string& actual, const std::string& expected) {
  boost::json::error_code code;
  const boost::json::value value = boost::json::parse(actual, code);
  ASSERT_FALSE(code) << actual;
  EXPECT_EQ(value, boost::json::parse(expected)) << actual;
}

const Item kKey{{"id", AttributeValue("a\"1")}};

TEST(Requests, GetItem) {
  expect_json(
      encode(GetItemRequest{.table = "jobs", .key = kKey}),
      R"({"TableName":"jobs","Key":{"id":{"S":"a\"1"}},"ConsistentRead":true,"ReturnConsumedCapacity":"TOTAL"})");
  expect_json(encode(GetItemRequest{.table = "jobs", .key = kKey, .consistent = false}),
              R"({"TableName":"jobs","Key":{"id":{"S":"a\"1"}},"ReturnConsumedCapacity":"TOTAL"})");
}

TEST(Requests, PutItem) {
  expect_json(encode(ItemWrite{.table = "jobs", .item = kKey}),
              R"({"TableName":"jobs","Item":{"id":{"S":"a\"1"}},"ReturnConsumedCapacity":"TOTAL"})");
  expect_json(encode(ItemWrite{.table = "jobs",
                               .item = kKey,
                               .condition = "#v = :v",
                               .names = {{"#v", "version"}, {"#x", "a\nb"}},
                               .values = {{":v", Number{"1"}}}}),
              R"({"TableName":"jobs","Item":{"id":{"S":"a\"1"}},"ConditionExpression":"#v = :v",
                  "ExpressionAttributeNames":{"#v":"version","#x":"a\nb"},"ExpressionAttributeValues":{":v":{"N":"1"}},
                  "ReturnConsumedCapacity":"TOTAL"})");
}

TEST(Requests, UpdateItem) {
  expect_json(encode(ItemWrite{.kind = ItemWrite::Kind::update,
                               .table = "jobs",
                               .item = kKey,
                               .update = "SET #v = :v",
                               .condition = "attribute_exists (id) ",
                               .names = {{"#v", "version"}},
                               .values = {{":v", Number{"1"}}},
                               .returning = true}),
              R"({"TableName":"jobs","Key":{"id":{"S":"a\"1"}},"UpdateExpression":"SET #v = :v",
                  "ConditionExpression":"attribute_exists (id) ","ExpressionAttributeNames":{"#v":"version"},
                  "ExpressionAttributeValues":{":v":{"N":"1"}},"ReturnValues":"ALL_NEW","ReturnConsumedCapacity":"TOTAL"})");
}

TEST(Requests, DeleteItem) {
  expect_json(encode(ItemWrite{.kind = ItemWrite::Kind::remove, .table = "jobs", .item = kKey}),
              R"({"TableName":"jobs","Key":{"id":{"S":"a\"1"}},"ReturnConsumedCapacity":"TOTAL"})");
  expect_json(
      encode(ItemWrite{.kind = ItemWrite::Kind::remove, .table = "jobs", .item = kKey, .returning = true}),
      R"({"TableName":"jobs","Key":{"id":{"S":"a\"1"}},"ReturnValues":"ALL_OLD","ReturnConsumedCapacity":"TOTAL"})");
}

TEST(Requests, Query) {
  expect_json(encode(QueryRequest{{.table = "jobs", .values = {{":q", AttributeValue("x")}}}, "q = :q"}),
              R"({"TableName":"jobs","KeyConditionExpression":"q = :q","ExpressionAttributeValues":{":q":{"S":"x"}},
                  "ReturnConsumedCapacity":"TOTAL"})");
  expect_json(encode(QueryRequest{{.table = "jobs",
                                   .index = "by_q",
                                   .filter = "a = :a",
                                   .projection = "id",
                                   .limit = 0,
                                   .consistent = true,
                                   .exclusive_start_key = kKey},
                                  "q = :q",
                                  false}),
              R"({"TableName":"jobs","IndexName":"by_q","KeyConditionExpression":"q = :q","FilterExpression":"a = :a",
                  "ProjectionExpression":"id","Limit":0,"ScanIndexForward":false,"ConsistentRead":true,
                  "ExclusiveStartKey":{"id":{"S":"a\"1"}},"ReturnConsumedCapacity":"TOTAL"})");
}

TEST(Requests, Scan) {
  expect_json(
      encode(ScanRequest{{.table = "jobs", .limit = 10, .exclusive_start_key = kKey}}),
      R"({"TableName":"jobs","Limit":10,"ExclusiveStartKey":{"id":{"S":"a\"1"}},"ReturnConsumedCapacity":"TOTAL"})");
}

TEST(Requests, CreateTable) {
  const CreateTableRequest request{
      .name = "jobs",
      .attribute_types = {{"id", "S"}, {"q", "S"}, {"t", "N"}},
      .hash_key = "id",
      .range_key = "",
      .indexes = {{.name = "by_q", .hash_key = "q", .range_key = "t", .projection = "", .status = ""},
                  {.name = "by_t", .hash_key = "t", .range_key = "", .projection = "KEYS_ONLY", .status = "ACTIVE"}},
      .deletion_protection = true};
  expect_json(encode(request),
              R"({"TableName":"jobs","BillingMode":"PAY_PER_REQUEST",
                  "AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"q","AttributeType":"S"},
                                          {"AttributeName":"t","AttributeType":"N"}],
                  "KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
                  "GlobalSecondaryIndexes":[
                    {"IndexName":"by_q","KeySchema":[{"AttributeName":"q","KeyType":"HASH"},{"AttributeName":"t","KeyType":"RANGE"}],
                     "Projection":{"ProjectionType":"ALL"}},
                    {"IndexName":"by_t","KeySchema":[{"AttributeName":"t","KeyType":"HASH"}],
                     "Projection":{"ProjectionType":"KEYS_ONLY"}}],
                  "DeletionProtectionEnabled":true})");
}

TEST(Requests, BatchExecuteStatement) {
  const std::vector<Statement> statements{
      {.text = "DELETE FROM \"t\" WHERE id = ?", .parameters = {AttributeValue("x"), Number{"1"}}},
      {.text = "SELECT * FROM t", .parameters = {}}};
  expect_json(encode_batch_execute(statements),
              R"({"Statements":[{"Statement":"DELETE FROM \"t\" WHERE id = ?","Parameters":[{"S":"x"},{"N":"1"}]},
                                {"Statement":"SELECT * FROM t"}],"ReturnConsumedCapacity":"TOTAL"})");
}

TEST(Requests, BatchGetItem) {
  const std::vector<Item> keys{kKey, {{"id", AttributeValue("b")}}};
  expect_json(encode_batch_get("jo\"bs", keys),
              R"({"RequestItems":{"jo\"bs":{"ConsistentRead":true,"Keys":[{"id":{"S":"a\"1"}},{"id":{"S":"b"}}]}},
                  "ReturnConsumedCapacity":"TOTAL"})");
}

TEST(Requests, DescribeTable) { EXPECT_EQ(encode_describe_table("jobs"), R"({"TableName":"jobs"})"); }

}  // namespace
}  // namespace sluice::dynamo
