#include <gtest/gtest.h>

#include "tests/dynamodb_model/model_rig.hpp"

namespace sluice::test::model {
namespace {

namespace json = boost::json;

class ModelPaging : public testing::Test {
 protected:
  void put_row(int n) {
    rig.ask("PutItem", R"({"TableName":"rows","Item":{"box":{"S":"s"},"n":{"N":")" + std::to_string(n) + R"("}}})");
  }
  Reply query(const std::string& range, const std::string& values, const std::string& more = "") {
    return rig.ask("Query", R"({"TableName":"rows","KeyConditionExpression":"box = :s)" + range +
                                R"(","ExpressionAttributeValues":{":s":{"S":"s"})" + values + "}" + more + "}");
  }
  static std::string numbers(const Reply& reply) {
    std::string out;
    for (const auto& item : reply.body.at("Items").as_array()) {
      out += (out.empty() ? "" : " ") + std::string(item.at("n").at("N").as_string());
    }
    return out;
  }
  ModelRig rig;
};

TEST_F(ModelPaging, SortKeysAreNumbersAndBoundsAreKept) {
  for (const int n : {10, 9, -3, 100, 2}) {
    put_row(n);
  }
  EXPECT_EQ(numbers(query("", "")), "-3 2 9 10 100");
  EXPECT_EQ(numbers(query(" AND n > :a", R"(,":a":{"N":"9"})")), "10 100");
  EXPECT_EQ(numbers(query(" AND n <= :a", R"(,":a":{"N":"9"})")), "-3 2 9");
  EXPECT_EQ(numbers(query(" AND n < :a", R"(,":a":{"N":"9"})", R"(,"ScanIndexForward":false)")), "2 -3");
  EXPECT_EQ(numbers(query(" AND n BETWEEN :a AND :b", R"(,":a":{"N":"2"},":b":{"N":"10"})")), "2 9 10");
}

TEST_F(ModelPaging, ACursorGoesOnWhereThePageEnded) {
  for (int n = 0; n < 25; ++n) {
    put_row(n);
  }
  for (const bool forward : {true, false}) {
    std::string all;
    std::string cursor;
    int pages = 0;
    do {
      const Reply reply =
          query(" AND n < :a", R"(,":a":{"N":"20"})",
                std::string(R"(,"Limit":6,"ScanIndexForward":)") + (forward ? "true" : "false") + cursor);
      all += numbers(reply) + " ";
      const auto* last = reply.body.as_object().if_contains("LastEvaluatedKey");
      cursor = last == nullptr ? "" : R"(,"ExclusiveStartKey":)" + json::serialize(*last);
    } while (!cursor.empty() && ++pages < 10);
    EXPECT_EQ(all, forward ? "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 "
                           : "19 18 17 16 15 14 13 12 11 10 9 8 7 6 5 4 3 2 1 0 ");
  }
}

// Entries of one sort key are told apart by the table's key.
TEST_F(ModelPaging, ACursorOfAnIndexIsExactAmongEqualSortKeys) {
  for (int i = 0; i < 10; ++i) {
    rig.put_job(std::to_string(i), "same");
  }
  std::set<std::string> seen;
  std::string cursor;
  for (int page = 0; page < 10; ++page) {
    const Reply reply = rig.query_jobs(R"(,"Limit":1)" + cursor);
    ASSERT_EQ(reply.body.at("Count").as_int64(), 1);
    seen.insert(std::string(reply.body.at("Items").as_array()[0].at("id").at("S").as_string()));
    cursor = R"(,"ExclusiveStartKey":)" + json::serialize(reply.body.at("LastEvaluatedKey"));
  }
  EXPECT_EQ(seen.size(), 10u);
}

TEST_F(ModelPaging, AFilterCountsWhatItLeavesOut) {
  for (int i = 0; i < 10; ++i) {
    rig.put_job(std::to_string(i), std::to_string(i), i % 2 == 0 ? "even" : "odd");
  }
  const Reply reply =
      rig.ask("Query", R"({"TableName":"jobs","IndexName":"by-kind","KeyConditionExpression":"kind = :k",
    "FilterExpression":"#d = :d","ExpressionAttributeNames":{"#d":"data"},"Limit":4,
    "ExpressionAttributeValues":{":k":{"S":"k"},":d":{"S":"even"}}})");
  EXPECT_EQ(reply.body.at("Count").as_int64(), 2);
  EXPECT_EQ(reply.body.at("ScannedCount").as_int64(), 4);
}

TEST_F(ModelPaging, APageEndsAtOneMegabyte) {
  for (int i = 0; i < 8; ++i) {
    rig.put_job(std::to_string(i), std::to_string(i), std::string(300'000, 'x'));
  }
  const Reply reply = rig.query_jobs();
  EXPECT_EQ(reply.body.at("Count").as_int64(), 4);
  EXPECT_EQ(reply.body.as_object().count("LastEvaluatedKey"), 1u);
}

}  // namespace
}  // namespace sluice::test::model
