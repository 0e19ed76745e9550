#include "dynamo/codec/responses.hpp"

#include <gtest/gtest.h>

namespace sluice::dynamo {
namespace {

using std::string_literals::operator""s;

template <typename T>
void expect_unreadable(const Result<T>& result, const std::string& what = "") {
  ASSERT_FALSE(result.has_value()) << what;
  EXPECT_EQ(result.error().kind, ErrorKind::malformed_response) << what;
  EXPECT_TRUE(result.error().outcome_unknown) << "the call reached the server";
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
}

constexpr std::string_view kPage =
    R"({"Items":[{"id":{"S":"a"}},{"id":{"S":"b"},"n":{"N":"7"}}],"Count":2,"ScannedCount":9,
        "LastEvaluatedKey":{"id":{"S":"b"}},"Unknown":{"deep":[1,{"x":null}]},
        "ConsumedCapacity":{"TableName":"t","CapacityUnits":1.5,"Table":{"CapacityUnits":0.5},
                            "GlobalSecondaryIndexes":{"i":{"CapacityUnits":0.75},"j":{"CapacityUnits":0.25}}}})";

TEST(Responses, Page) {
  const Result<Page> page = decode_page(kPage);
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->items.size(), 2u);
  EXPECT_EQ(page->items[1], (Item{{"id", AttributeValue("b")}, {"n", Number{"7"}}}));
  EXPECT_EQ(page->last_evaluated_key, (Item{{"id", AttributeValue("b")}}));
  EXPECT_EQ(page->capacity.read, 1.5) << "the parts are within the total";
  EXPECT_EQ(page->capacity.write, 0);
}

TEST(Responses, PageWithoutItems) {
  const Result<Page> page = decode_page(R"({"Count":5000000000,"ScannedCount":5000000001,"LastEvaluatedKey":null})");
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->items.empty());
  EXPECT_TRUE(page->last_evaluated_key.empty());
}

TEST(Responses, EveryTruncationOfAPageIsUnreadable) {
  for (std::size_t size = 0; size < kPage.size(); ++size) {
    expect_unreadable(decode_page(kPage.substr(0, size)), std::to_string(size));
  }
}

TEST(Responses, WrongShapesAreUnreadable) {
  for (const std::string& body : {""s, "null"s, "[]"s, "OK"s, "<html>"s, R"({"Items":{}})"s, R"({"Items":[1]})"s,
                                  R"({"Items":[{"a":"x"}]})"s, R"({"Items":["x"]})"s, R"({"LastEvaluatedKey":[]})"s,
                                  R"({"ConsumedCapacity":1})"s, R"({"ConsumedCapacity":{"CapacityUnits":"1"}})"s,
                                  R"({"ConsumedCapacity":{"CapacityUnits":1e999}})"s, R"({"Count":2}{})"s}) {
    expect_unreadable(decode_page(body), body);
  }
}

TEST(Responses, CapacityByKindWhereDynamoDbSaysIt) {
  const auto output = decode_item_output(
      R"({"ConsumedCapacity":{"CapacityUnits":3,"ReadCapacityUnits":1,"WriteCapacityUnits":2}})", Usage::write);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->capacity.read, 1);
  EXPECT_EQ(output->capacity.write, 2);
}

TEST(Responses, ItemOutput) {
  const auto got =
      decode_item_output(R"({"Item":{"id":{"S":"a"}},"ConsumedCapacity":{"CapacityUnits":1.0}})", Usage::read);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->item, (Item{{"id", AttributeValue("a")}}));
  EXPECT_EQ(got->capacity.read, 1);
  const auto updated =
      decode_item_output(R"({"Attributes":{"v":{"N":"2"}},"ConsumedCapacity":{"CapacityUnits":2.0}})", Usage::write);
  ASSERT_TRUE(updated);
  EXPECT_EQ(updated->item, (Item{{"v", Number{"2"}}}));
  EXPECT_EQ(updated->capacity.write, 2);
  const auto absent = decode_item_output("{}", Usage::read);
  ASSERT_TRUE(absent);
  EXPECT_TRUE(absent->item.empty());
}

TEST(Responses, BatchExecute) {
  const auto batch = decode_batch_execute(
      R"({"Responses":[{"TableName":"t","Item":{"id":{"S":"a"}}},
                       {"TableName":"t","Error":{"Code":"ConditionalCheckFailed","Message":"The conditional\nrequest failed"}},
                       {"TableName":"t"},
                       {"Error":{"Code":"DuplicateItem","Message":"dup"}},
                       {"Error":{"Code":"InternalServerError","Message":"oops"}},
                       {"Error":{"Code":"ThrottlingError"}}],
          "ConsumedCapacity":[{"TableName":"t","CapacityUnits":3},{"TableName":"u","CapacityUnits":2,"Table":{"CapacityUnits":2}}]})",
      6);
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_EQ(batch->capacity.write, 5);
  EXPECT_FALSE(batch->results[0].error);
  EXPECT_EQ(batch->results[0].item, (Item{{"id", AttributeValue("a")}}));
  EXPECT_EQ(batch->results[1].error->kind, ErrorKind::conditional_check_failed);
  EXPECT_EQ(batch->results[1].error->exception_name, "ConditionalCheckFailed");
  EXPECT_EQ(batch->results[1].error->message, "ConditionalCheckFailed: The conditional request failed");
  EXPECT_FALSE(batch->results[1].error->outcome_unknown);
  EXPECT_FALSE(batch->results[2].error);
  EXPECT_TRUE(batch->results[2].item.empty());
  EXPECT_EQ(batch->results[3].error->kind, ErrorKind::conditional_check_failed);
  EXPECT_EQ(batch->results[3].error->exception_name, "DuplicateItem");
  EXPECT_EQ(batch->results[4].error->kind, ErrorKind::server);
  EXPECT_TRUE(batch->results[4].error->outcome_unknown);
  EXPECT_EQ(batch->results[5].error->kind, ErrorKind::throttled);
}

TEST(Responses, BatchExecuteMustAnswerEveryStatement) {
  const std::string body = R"({"Responses":[{},{}]})";
  EXPECT_TRUE(decode_batch_execute(body, 2).has_value());
  expect_unreadable(decode_batch_execute(body, 1));
  expect_unreadable(decode_batch_execute(body, 3));
  expect_unreadable(decode_batch_execute("{}", 1));
}

TEST(Responses, BatchGet) {
  const auto output = decode_batch_get(
      R"({"Responses":{"t":[{"id":{"S":"a"}},{"id":{"S":"b"}}]},
          "UnprocessedKeys":{"t":{"ConsistentRead":true,"Keys":[{"id":{"S":"c"}}]}},
          "ConsumedCapacity":[{"TableName":"t","CapacityUnits":2.0}]})");
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(output->items.size(), 2u);
  EXPECT_EQ(output->unread, (std::vector<Item>{{{"id", AttributeValue("c")}}}));
  EXPECT_EQ(output->capacity.read, 2);
  const auto empty = decode_batch_get(R"({"Responses":{},"UnprocessedKeys":{}})");
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->items.empty() && empty->unread.empty());
}

TEST(Responses, TableOfProvisionedCapacityWithStreamAndSizes) {
  const auto table = decode_table(
      R"({"Table":{"TableName":"jobs","TableSizeBytes":4096,"TableClassSummary":{"TableClass":"STANDARD_INFREQUENT_ACCESS"},
          "ProvisionedThroughput":{"NumberOfDecreasesToday":0,"ReadCapacityUnits":5,"WriteCapacityUnits":7},
          "StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_IMAGE"},
          "GlobalSecondaryIndexes":[{"IndexName":"i","Backfilling":true,"ItemCount":3,"IndexSizeBytes":100}]}})");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->size_bytes, 4096);
  EXPECT_EQ(table->table_class, "STANDARD_INFREQUENT_ACCESS");
  EXPECT_EQ(table->billing_mode, "PROVISIONED");
  EXPECT_EQ(table->read_units, 5);
  EXPECT_EQ(table->write_units, 7);
  EXPECT_EQ(table->stream_view_type, "NEW_IMAGE");
  ASSERT_EQ(table->indexes.size(), 1u);
  EXPECT_TRUE(table->indexes[0].backfilling);
  EXPECT_EQ(table->indexes[0].item_count, 3);
  EXPECT_EQ(table->indexes[0].size_bytes, 100);
  const auto off = decode_table(
      R"({"Table":{"TableName":"jobs","StreamSpecification":{"StreamEnabled":false,"StreamViewType":"NEW_IMAGE"}}})");
  EXPECT_EQ(off->stream_view_type, "");
}

TEST(Responses, Table) {
  const auto table = decode_table(
      R"({"Table":{"TableName":"jobs","TableStatus":"ACTIVE","TableArn":"arn:aws:dynamodb:us-east-1:1:table/jobs","ItemCount":12,
          "CreationDateTime":1.795232281E9,"DeletionProtectionEnabled":true,
          "KeySchema":[{"AttributeName":"id","KeyType":"HASH"},{"AttributeName":"s","KeyType":"RANGE"}],
          "AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeType":"N","AttributeName":"s"}],
          "BillingModeSummary":{"BillingMode":"PAY_PER_REQUEST","LastUpdateToPayPerRequestDateTime":1.5E9},
          "GlobalSecondaryIndexes":[{"IndexName":"i","KeySchema":[{"AttributeName":"q","KeyType":"HASH"}],
                                     "Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["x"]},"IndexStatus":"CREATING"}]}})");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->name, "jobs");
  EXPECT_EQ(table->status, "ACTIVE");
  EXPECT_EQ(table->arn, "arn:aws:dynamodb:us-east-1:1:table/jobs");
  EXPECT_EQ(table->hash_key, "id");
  EXPECT_EQ(table->range_key, "s");
  EXPECT_EQ(table->billing_mode, "PAY_PER_REQUEST");
  EXPECT_EQ(table->item_count, 12);
  EXPECT_TRUE(table->deletion_protection);
  EXPECT_EQ(table->attribute_types, (std::map<std::string, std::string>{{"id", "S"}, {"s", "N"}}));
  ASSERT_EQ(table->indexes.size(), 1u);
  EXPECT_EQ(table->indexes[0].name, "i");
  EXPECT_EQ(table->indexes[0].hash_key, "q");
  EXPECT_EQ(table->indexes[0].range_key, "");
  EXPECT_EQ(table->indexes[0].projection, "INCLUDE");
  EXPECT_EQ(table->indexes[0].status, "CREATING");
}

TEST(Responses, TableOfCreateTableAndBillingByDefault) {
  const auto table = decode_table(R"({"TableDescription":{"TableName":"jobs","TableStatus":"CREATING"}})");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->status, "CREATING");
  EXPECT_EQ(table->billing_mode, "PROVISIONED");
  expect_unreadable(decode_table("{}"));
  expect_unreadable(decode_table(R"({"Table":{}})"));
}

}  // namespace
}  // namespace sluice::dynamo
